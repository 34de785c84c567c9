#!/usr/bin/python3
"""Names of code that a program generates at run time: /tmp/perf-PID.map."""

import contextlib
import os
import pathlib
import shutil
import stat

import chunk_rules
import harness
from harness import BUILD, Failure, Skip, check
from layout import Layout

# A sandboxed process that makes a forbidden call is killed.
STRICT = harness.environment(SENTRY_PROFD_SECCOMP_KILL='1')


@contextlib.contextmanager
def own_map(target):
    """The target's map file, removed at the end."""
    path = pathlib.Path(f'/tmp/perf-{target.pid}.map')
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def start(box, *argv, **options):
    target = box.start(argv, **options)
    expected = target.wait_line('expect (.*)')[1].split(';')
    target.wait_line('ready.*')
    return target, expected


def start_jit(box, *args):
    """Starts jit; returns when it waits in its generated code."""
    target, expected = start(box, BUILD / 'targets/jit', *args)
    harness.wait_for(lambda: harness.blocked(target.pid), 'it waits')
    return target, expected


def lines(target):
    return ''.join(line.removeprefix('map ') + '\n' for line in
                   target.stdout.splitlines() if line.startswith('map '))


def profile(box, pid, layout=None):
    profd = box.profile([pid], env=STRICT)
    envelope, = profd.envelopes
    found = chunk_rules.problems(envelope, layout)
    check(found == [], f'{found[:5]}')
    frames = envelope.chunk['profile']['frames']
    stack = max(envelope.chunk['profile']['stacks'], key=len)
    check(profd.stats['unwind']['failed'] == {}, f'{profd.stats["unwind"]}')
    return [frames[i] for i in stack]


def check_names(frames, expected):
    names = [f.get('function') for f in frames]
    at = names.index(expected[0])
    check(names[at:at + len(expected)] == expected, f'{names}')
    made = frames[at + 1:at + 3]
    check(all(f['in_app'] and 'package' not in f for f in made), f'{made}')


def check_nameless(frames, expected):
    names = [f.get('function') for f in frames]
    at = names.index(expected[0])
    check(names[at + 1:at + 4] == [None, None, 'main'], f'{names}')


def test_names(box):
    target, expected = start_jit(box, 'perf')
    with own_map(target):
        check_names(profile(box, target.pid, Layout(target.pid)), expected)


def test_whose_file(box):
    """Only a regular file that belongs to the target's user is read, and no
    link."""
    target, expected = start_jit(box, '-')
    text = lines(target)
    with own_map(target) as path:
        check_nameless(profile(box, target.pid), expected)
        elsewhere = box.dir / 'elsewhere'
        elsewhere.write_text(text)
        path.symlink_to(elsewhere)
        check_nameless(profile(box, target.pid), expected)
        path.unlink()
        os.mkfifo(path)
        check_nameless(profile(box, target.pid), expected)
        path.unlink()
        path.write_text(text)
        check_names(profile(box, target.pid), expected)
        if os.geteuid() == 0:
            os.chown(path, 65534, 65534)
            check_nameless(profile(box, target.pid), expected)


def test_nonsense(box):
    """Invalid lines are ignored, and control bytes are escaped."""
    target, expected = start_jit(box, '-')
    text = lines(target).encode()
    with own_map(target) as path:
        path.write_bytes(b'\n' + b'\0' * 100 + b'\nzz 10 x\n10\n10 20\n'
                         b'ffffffffffffffff ffff wraps\n' + os.urandom(70000) +
                         b'\n' + text + b'without an end')
        check_names(profile(box, target.pid), expected)


def test_in_a_container(box):
    """The file is found in the target's root, by the target's own pid."""
    if os.geteuid() != 0 or not shutil.which('unshare'):
        raise Skip('needs root and unshare')
    root = box.make_dir('root')
    (root / 'tmp').mkdir()
    shutil.copy(BUILD / 'targets/jit', root)
    starter, expected = start(box, 'unshare', '--pid', '--fork',
                              '--kill-child', 'chroot', root, '/jit', 'perf')
    check(stat.S_ISREG((root / 'tmp/perf-1.map').stat().st_mode), 'its map')
    pid, = harness.children(starter.pid)
    harness.wait_for(lambda: harness.blocked(pid), 'it waits')
    check_names(profile(box, pid), expected)
    # A link within the root is refused, too.
    (root / 'tmp/perf-1.map').rename(root / 'tmp/map')
    (root / 'tmp/perf-1.map').symlink_to('map')
    check_nameless(profile(box, pid), expected)


def test_node(box):
    """node, if it is installed."""
    if not shutil.which('node'):
        raise Skip('no node (Debian: nodejs)')
    script = box.dir / 'work.js'
    script.write_text('''
function innermost(n) { let s = 0; for (let i = 0; i < n; i++) s += i % 7;
                        return s; }
function between(n) { let s = 0; for (let i = 0; i < 50; i++)
                      s += innermost(n + i); return s; }
setTimeout(() => console.log('ready'), 0);
setTimeout(() => { for (;;) between(200000); }, 100);
''')
    target = box.start(['node', '--perf-basic-prof',
                        '--no-turbo-inlining', script],
                       cwd=box.dir)
    target.wait_line('ready')
    with own_map(target) as path:
        # The function is compiled, with frame pointers, and not interpreted.
        harness.wait_for(lambda: ':*between' in path.read_text(),
                         'compiled code')
        profd = box.profile([target], work=1)
    chunk = profd.chunks[-1]
    frames = chunk['profile']['frames']
    for stack in chunk['profile']['stacks']:
        names = [frames[i].get('function', '?') for i in stack]
        if 'JS:*innermost' in names[0] and 'JS:*between' in names[1]:
            check(any('uv_run' in n for n in names), f'{names}')
            return
    raise Failure('no stack goes from one to the other')


LLVM = '''
int puts(const char *);
int fflush(void *);
static volatile unsigned long sum;
__attribute__((noinline)) unsigned long leaf(unsigned long x)
{
    for (int i = 0; i < 1000000; i++)
        x = x * 6364136223846793005 + 1;
    return x;
}
__attribute__((noinline)) unsigned long outer(unsigned long x)
{
    sum += leaf(x);
    return sum;
}
int main(void)
{
    puts("ready");
    fflush(0);
    for (;;)
        sum += outer(sum);
}
'''


def test_llvm(box):
    """The code that LLVM makes has frame pointers here. lli, which calls it, has none: it has
    other values in the register."""
    if not shutil.which('lli') or not shutil.which('clang'):
        raise Skip('no lli (Debian: llvm), or no clang')
    source = box.dir / 'made.c'
    source.write_text(LLVM)
    compiler = box.start(['clang', '-O1', '-fno-omit-frame-pointer', '-S',
                          '-emit-llvm', '-o', box.dir / 'made.ll', source])
    check(compiler.wait() == 0, 'clang')
    target = box.start(['lli', box.dir / 'made.ll'])
    target.wait_line('ready')
    profd = box.profile([target], work=1)
    unwind = profd.stats['unwind']
    failed = sum(unwind['failed'].values())
    # A function that has not pushed the frame pointer yet cannot be told from one that has.
    check(unwind['frame_pointer'] > 50 and failed * 50 < unwind['complete'],
          f'{unwind}')
    for chunk in profd.chunks:
        frames = chunk['profile']['frames']
        for stack in chunk['profile']['stacks']:
            check('__libc_start_main' in [frames[i].get('function')
                                          for i in stack[-3:]] or
                  len(stack) == 1, f'{stack}')


if __name__ == '__main__':
    harness.main(globals())
