#!/usr/bin/python3
"""32-bit programs are refused in one line, also one that a target executes by
exec(2). No trace of the profiler stays in them.
"""

import os
import re
import signal
import struct
import subprocess

import harness
from harness import Skip, check, wait_for

# The smallest program for the checks: a jump to itself.
BASE = 0x08048000
CODE = b'\xeb\xfe'
LINE = 'sentry-profd: process {} is a 32-bit program: only 64-bit ones can ' \
    'be profiled'


def program(box):
    """Makes an executable of i386 that runs for ever."""
    if os.uname().machine != 'x86_64':
        raise Skip('the 32-bit program is one of i386')
    size = 52 + 32 + len(CODE)
    ident = b'\x7fELF\x01\x01\x01'.ljust(16, b'\0')
    header = struct.pack('<16sHHIIIIIHHHHHH', ident, 2, 3, 1, BASE + 84, 52,
                         0, 0, 52, 32, 1, 0, 0, 0)
    segment = struct.pack('<IIIIIIII', 1, 0, BASE, BASE, size, size, 5, 4096)
    path = box.make_dir('i386') / 'spin32'
    path.write_bytes(header + segment + CODE)
    path.chmod(0o755)
    return path


def start(box, argv, **options):
    try:
        return box.start(argv, **options)
    except OSError as e:
        raise Skip(f'no 32-bit programs run here: {e.strerror}') from None


def exe(pid):
    return os.path.basename(os.readlink(f'/proc/{pid}/exe'))


def check_untouched(target):
    check(target.running(), 'the target has ended')
    check(harness.tracer(target.pid) == 0, 'it is still traced')
    wait_for(lambda: harness.state(target.pid) == 'R', 'the target runs')


def test_refused(box):
    target = start(box, [program(box)])
    profd = box.profd([target])
    profd.finish(status=1)
    check(profd.stderr.splitlines() == [LINE.format(target.pid)],
          f'not in one line: {profd.stderr}')
    check_untouched(target)


def test_children_became_some(box):
    """Children often execute their program before they are attached to."""
    path = program(box)
    start(box, [path]).end()
    target = box.start(['/bin/sh', '-c', f'read line; for i in 1 2 3 4 5 6 7 8;'
                        f' do {path} & done; exec sleep 1000'],
                       stdin=subprocess.PIPE)
    profd = box.profd([target], '--children').wait_attached()
    target.process.stdin.write(b'\n')
    target.process.stdin.flush()
    wait_for(lambda: len(harness.children(target.pid)) == 8, 'eight children')
    children = harness.children(target.pid)
    wait_for(lambda: all(exe(c) == 'spin32' for c in children),
             'the 32-bit programs')
    wait_for(lambda: all(harness.tracer(c) == 0 for c in children),
             'the end of the tracing')
    check(harness.tracer(target.pid) != 0, 'their parent is not profiled')
    profd.interrupt()
    for child in children:
        os.kill(child, signal.SIGKILL)


def test_became_one(box):
    path = program(box)
    start(box, [path]).end()
    target = box.start(['/bin/sh', '-c', f'read line; exec {path}'],
                       stdin=subprocess.PIPE)
    profd = box.profd([target]).wait_attached()
    # The shell waits for its input, and the profiler has sampled it.
    wait_for(lambda: harness.state(target.pid) == 'S', 'the shell to wait')
    target.process.stdin.write(b'\n')
    target.process.stdin.flush()
    profd.finish(status=1)
    check(LINE.format(target.pid) in profd.stderr.splitlines(),
          f'no line: {profd.stderr}')
    wait_for(lambda: exe(target.pid) == 'spin32', 'the 32-bit program')
    check_untouched(target)
    stats = profd.stats
    check(stats['chunks']['made'] == stats['chunks']['written'],
          f'a chunk was lost: {stats["chunks"]}')
    check(not re.search('warning.*lost', profd.stderr), profd.stderr)


if __name__ == '__main__':
    harness.main(globals())
