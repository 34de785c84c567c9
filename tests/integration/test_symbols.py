#!/usr/bin/python3
"""Names of code that no symbol names: stubs of a PLT, functions behind a symbol without a size,
Go's functions in a stripped program with cgo, and code too far from the program's start."""

import os
import re
import shutil
import subprocess

import harness
from harness import ROOT, Skip, check

SOURCES = ROOT / 'tests/integration/names'

# A sandboxed process that makes a forbidden call is killed.
STRICT = harness.environment(SENTRY_PROFD_SECCOMP_KILL='1')


def run(*argv, **options):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False,
                          **options)
    check(done.returncode == 0, f'{argv}: {done.stderr}')
    return done.stdout


def profile(box, path, *args):
    """Profiles the program for 0.7 s of its processor time. Returns sentry-profd, the program, and
    (name, package, address) of the innermost frame of each sample."""
    target = box.start([path])
    target.wait_line('ready')
    profd = box.profile([target], *args, work=0.7, env=STRICT)
    target.end()
    chunk, = profd.chunks
    profile = chunk['profile']
    leaves = []
    for sample in profile['samples']:
        stack = profile['stacks'][sample['stack_id']]
        # With --mode cpu a thread that does not run has no stack.
        if not stack:
            continue
        frame = profile['frames'][stack[0]]
        leaves.append((frame.get('function'), frame.get('package'),
                       int(frame['instruction_addr'], 16)))
    return profd, target, leaves


def share(leaves, name):
    return sum(leaf[0] == name for leaf in leaves) / len(leaves)


# GNU ld's stubs for processors with and without indirect branch tracking.
FLAGS = ([], ['-Wl,-z,ibtplt', '-fcf-protection'], ['-Wl,-z,now'], ['-DPOINTER', '-fPIE', '-pie'],
         ['-no-pie', '-Wl,-z,lazy'])


def has_linker(name):
    return shutil.which('ld.' + name) or name == 'mold' and shutil.which('mold')


def test_plt(box):
    """With each linker that is installed."""
    for linker in ('bfd', 'gold', 'lld', 'mold'):
        if not has_linker(linker):
            continue
        for i, flags in enumerate(FLAGS):
            if 'ibtplt' in str(flags) and linker != 'bfd':
                continue
            check_plt(box, box.make_dir(f'{linker}-{i}'), [f'-fuse-ld={linker}', *flags])


def check_plt(box, directory, flags):
    library, path = directory / 'libtiny.so', directory / 'calls'
    run('gcc', '-O2', '-fPIC', '-shared', '-DLIB', SOURCES / 'calls.c', '-o', library)
    run('gcc', '-O2', SOURCES / 'calls.c', f'-L{directory}', '-ltiny', f'-Wl,-rpath,{directory}',
        '-o', path, *flags)
    run('strip', path)
    check_stubs(box, path, flags)


def check_stubs(box, path, flags):
    # Some 25 of 700 samples are in the stub.
    _, _, leaves = profile(box, path, '--rate', '997')
    names = {leaf[0] for leaf in leaves}
    check(not names & {'_init', '_fini', '_start'}, f'{flags}: {names}')
    check(share(leaves, 'tiny@plt') > 0.005, f'{flags}: {names}')


def test_plt_of_functions_that_are_chosen_at_the_start(box):
    for flags in (['-static'], ['-static', '-Wl,-z,ibtplt'], ['-fPIE', '-pie']):
        path = box.make_dir('ifunc') / 'calls'
        run('gcc', '-O2', '-DIFUNC', SOURCES / 'calls.c', '-o', path, *flags)
        check_stubs(box, path, flags)


def test_symbols_without_a_size(box):
    directory = box.make_dir('unsized')
    library, path = directory / 'libunsized.so', directory / 'unsized'
    run('gcc', '-O2', '-fPIC', '-shared', '-DLIB', SOURCES / 'unsized.c', '-o', library)
    run('strip', library)
    run('gcc', '-O2', SOURCES / 'unsized.c', f'-L{directory}', '-lunsized',
        f'-Wl,-rpath,{directory}', '-o', path)
    for args in ((), ('--addresses', 'function')):
        _, target, leaves = profile(box, path, *args)
        wanted = {f'libunsized.so+0x{at}' for at in re.findall('place (.*)', target.stdout)}
        names = {name for name, package, _ in leaves if package == str(library)}
        check(len(wanted) == 2 and wanted <= names <= wanted | {'exported', 'asm_entry'},
              f'{names}, not {wanted}')


def test_far_code(box):
    path = box.make_dir('far') / 'far'
    run('gcc', '-O2', '-no-pie', '-mcmodel=large', '-fno-asynchronous-unwind-tables',
        SOURCES / 'far.c', '-Wl,--section-start=.far=0x500000000', '-o', path)
    profd, _, leaves = profile(box, path)
    check(profd.stats['unwind']['far_code'] == 1, f'{profd.stats["unwind"]}')
    lines = [l for l in profd.stderr.splitlines() if '4 GiB' in l]
    check(len(lines) == 1 and str(path) in lines[0], profd.stderr)
    check(share(leaves, 'far_away') == 0 and
          any(at >= 0x500000000 and package == str(path) for _, package, at in leaves), f'{leaves}')


def test_go_with_cgo(box):
    """The table of Go's functions has no section of its own."""
    if not shutil.which('go'):
        raise Skip('no go (Debian: golang-go)')
    directory = box.make_dir('go')
    path = directory / 'cgo'
    run('go', 'build', '-buildmode=pie', '-ldflags=-s -w -linkmode=external', '-o', path, 'main.go',
        cwd=SOURCES / 'cgo',
        env=dict(os.environ, GO111MODULE='off', CGO_ENABLED='1', GOCACHE=str(directory / 'cache'),
                 GOFLAGS=''))
    run('strip', path)
    check('gopclntab' not in run('readelf', '-SW', path), 'a section of its own')
    profd, _, leaves = profile(box, path, '--mode', 'cpu')
    chunk, = profd.chunks
    stacks = [[chunk['profile']['frames'][f].get('function') for f in s]
              for s in chunk['profile']['stacks']]
    check(share(leaves, 'main.spin') > 0.8, f'{leaves}')
    check(any(s[:5] == ['main.spin', 'main.turn', 'main.main', 'runtime.main', 'runtime.goexit']
              for s in stacks), f'{stacks}')


if __name__ == '__main__':
    harness.main(globals())
