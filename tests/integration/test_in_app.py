#!/usr/bin/python3
"""in_app of frames in an executable that also contains libraries."""

import re
import shutil
import subprocess

import harness
from harness import Skip, check, wait_for

RUST = r'''
use std::collections::BTreeMap;
struct Thing(u64);
impl std::fmt::Display for Thing {
    #[inline(never)]
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}
#[inline(never)]
fn work() -> usize {
    let mut m = BTreeMap::new();
    for i in 0..2000 { m.insert(Thing(i ^ 0x2a5).to_string(), i); }
    m.len()
}
fn main() {
    println!("ready");
    let mut n = 0;
    while std::hint::black_box(n) != 1 { n += work(); }
}
'''


def functions(profd):
    """({names that are in_app}, {those that are not}) of those in the main
    executable."""
    found = {True: set(), False: set()}
    for chunk in profd.chunks:
        for f in chunk['profile']['frames']:
            if not re.match('/(usr/)?lib|\\[', f.get('package', '[')):
                found[f['in_app']].add(f.get('function', ''))
    return found[True], found[False]


def test_static(box):
    """In a static program, libc's functions are not in_app."""
    target = box.target('unw_static', 'nanosleep')
    expected = set(re.search('expect (.*)', target.stdout)[1].split())
    wait_for(lambda: harness.blocked(target.pid), 'it waits')
    ours, theirs = functions(box.profile([target]))
    check(ours == expected, f'{ours}')
    check({'_start', '__libc_start_main'} <= theirs and
          any('nanosleep' in t for t in theirs), f'{theirs}')
    # The configuration takes precedence.
    many = ' '.join(f'/srv/app-{n}/**' for n in range(60))
    ours, theirs = functions(box.profile([target], '--in-app-include',
                                         f'{many} **/unw_static'))
    check(theirs == set() and '_start' in ours, f'{theirs}')
    ours, _ = functions(box.profile([target], '--in-app-exclude',
                                    '**/unw_static'))
    check(ours == set(), f'{ours}')


def test_rust(box):
    if not shutil.which('rustc'):
        raise Skip('no rustc')
    source = box.dir / 'program.rs'
    source.write_text(RUST)
    for mangling in ('legacy', 'v0'):
        exe = box.dir / mangling
        unstable = [] if mangling == 'v0' else ['-Z', 'unstable-options']
        made = subprocess.run(
            ['rustc', '-O', '-C', f'symbol-mangling-version={mangling}',
             *unstable, '-o', exe, source], capture_output=True, text=True,
            env=harness.environment(RUSTC_BOOTSTRAP='1'))
        if made.returncode != 0:
            raise Skip(f'rustc: {made.stderr.strip()[:200]}')
        target = box.start([exe])
        target.wait_line('ready')
        ours, theirs = functions(box.profile([target], '--platform', 'native',
                                             work=3))
        target.end()
        library = re.compile(r'<*(&(mut )?)?(std|core|alloc|__rustc)::')
        own = re.compile(r'(<&?)?(program::|legacy::|v0::)|main$|_start$')
        check([n for n in ours if not own.match(n)] == [], f'{ours}')
        check(any(library.match(n) for n in theirs), f'{theirs}')
        check(not any(own.match(n) for n in theirs), f'{theirs}')
        check(any('work' in n for n in ours) and
              any('Thing as core::fmt::Display' in n for n in ours), f'{ours}')


def test_go(box):
    if not shutil.which('gron'):
        raise Skip('no gron')
    target = box.start(['gron'], stdin=subprocess.PIPE)
    wait_for(lambda: harness.blocked(target.pid), 'it waits')
    ours, theirs = functions(box.profile([target]))
    # Functions of C in a stripped program have no name of their own.
    ours = {n for n in ours if '+0x' not in n}
    check(ours and all(n.startswith('main.') for n in ours), f'{ours}')
    check(any(n.startswith('runtime.') for n in theirs) and
          any(n.startswith('os.') for n in theirs) and
          any(n.startswith('encoding/json.') for n in theirs), f'{theirs}')


if __name__ == '__main__':
    harness.main(globals())
