#!/usr/bin/python3
"""Names of code that no symbol names: functions behind a symbol without a size."""

import re
import subprocess

import harness
from harness import ROOT, check

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


if __name__ == '__main__':
    harness.main(globals())
