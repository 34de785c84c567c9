#!/usr/bin/python3
"""The root broker in bad surroundings: children under an attacker's control
(hostile.py), a damaged environment at its start, a full disk, an impatient
user. test_deaths.py has children that die.
"""

import contextlib
import errno
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import account
import harness
import hostile
import test_hung
from harness import Skip, check, proc_status, wait_for

HERE = pathlib.Path(__file__).parent

def check_sums(profd, arrived='written'):
    stats = profd.stats
    account.check_sums(stats, arrived)
    for figures in [stats] + stats['targets']:
        check(0 <= figures['duration_s'] < 3600,
              f'a duration that cannot be: {figures["duration_s"]}')


# Children under an attacker's control.

def message_types():
    """Returns the names in MSG_LIST, in their order."""
    text = (harness.ROOT / 'daemon/msg/msg.h').read_text()
    return re.findall(r'\bX\(MSG_(\w+),', text)


def take_over(box, child, program):
    """Makes a directory with the executables, in which this one is replaced.
    """
    directory = box.make_dir('exes')
    for name in ('', '-capture', '-unwind', '-ship'):
        shutil.copy(harness.BUILD / f'sentry-profd{name}', directory)
    stand_in = directory / f'sentry-profd-{child}'
    stand_in.write_text(program)
    stand_in.chmod(0o755)
    return directory


def run_hostile(box, target, child, attack, until):
    """Runs a broker with this child replaced; interrupts the broker when
    until(it) is true."""
    directory = take_over(box, child, (HERE / 'hostile.py').read_text())
    (directory / 'types').write_text('\n'.join(message_types()))
    (directory / 'attack').write_text(attack)
    # The broker need not wait for a hostile ship. It attaches as soon as a session is open, since it
    # does not ask the child about LeakSanitizer.
    profd = box.profd([target], '--chunk-seconds', '1', '--shutdown-timeout',
                      '2', '--leak-check', 'attach', exe=directory / 'sentry-profd')
    profd.exes = directory
    error = directory / 'error'
    wait_for(lambda: until(profd) or error.exists() or not profd.running(),
             f'{child}: {attack}')
    check(not error.exists(), f'{child}: {attack}: {error.exists() and error.read_text()}')
    check(until(profd), f'{child}: {attack}: {profd.stderr}')
    profd.signal(signal.SIGINT)
    status = profd.wait()
    check(status in (0, 1, harness.ALL_LOST), f'{child}: {attack}: status {status}')
    check_sums(profd)
    return profd


def test_kept_rules(box):
    """Unusual but permitted messages do not harm the broker."""
    target = box.napper()
    for attack in hostile.OTHERS:
        ends = attack in ('keep socket', 'shrink')
        run_hostile(box, target, hostile.child_of(attack), attack,
                    lambda p: 'starting it again' in p.stderr if ends
                    else (p.exes / 'done').exists())


def test_refused_questions(box):
    """Each invalid request is answered, counted and logged. Its sender lives
    on."""
    target = box.napper()
    for attack in hostile.REFUSED:
        profd = run_hostile(box, target, 'unwind', attack,
                            lambda p: (p.exes / 'done').exists())
        answer = (profd.exes / 'answer').read_text()
        check(answer == f'1 {errno.EINVAL} 0', f'{attack}: {answer}')
        check(profd.stats['files_refused'] == 1, f'{attack}: {profd.stats}')
        check(profd.stderr.count('by an invalid name or address range') == 1 and
              'is replaced' not in profd.stderr, f'{attack}: {profd.stderr}')


def test_ship_that_talks_nonsense(box):
    target = box.napper()
    profd = run_hostile(box, target, 'ship', 'nothing', lambda p: re.search(
        'cannot write an envelope', p.stderr))
    check(profd.stats['chunks']['discarded'] ==
          {'write_error': profd.stats['chunks']['made']},
          f'chunks of a ship that writes none: {profd.stats["chunks"]}')


def test_file_that_nobody_may_close(box):
    """A target's file system that blocks every process that closes the
    target's file."""
    test_hung.need_fuse()
    hung = box.target('hang', 'close', box.make_dir('mount'))
    other = box.napper()
    profd = box.profd([other, hung], '--chunk-seconds', '1').wait_attached()
    test_hung.go_deep(hung)
    wait_for(lambda: f'opening a file of process {hung.pid} hangs' in profd.stderr,
             'the file to hang its reader')
    profd.wait_chunks(2)
    profd.signal(signal.SIGINT)
    profd.finish(status=1)
    check_sums(profd)
    hung.end()


# The environment at its start.

ODD = '''
import os, resource, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
resource.setrlimit(resource.RLIMIT_NOFILE, (24, 4096))
for fd in range(3):
    os.close(fd)
os.execv(sys.argv[1], sys.argv[1:])
'''


def test_odd_inheritance(box):
    target = box.napper()
    profd = box.profd([target], table=True, wrapper=[sys.executable, '-c', ODD])
    profd.wait_attached()
    for fd in range(3):
        check(os.readlink(f'/proc/{profd.pid}/fd/{fd}') == '/dev/null',
              f'descriptor {fd} is something else')
    capture, = profd.helpers()['capture']
    os.kill(capture, signal.SIGKILL)
    wait_for(lambda: set(profd.helpers()['capture']) - {capture},
             'another capture')
    profd.wait_attached()
    profd.wait_looks()  # two samples make a chunk
    profd.interrupt()
    check_sums(profd)
    check(profd.chunks, 'no chunk was written')


def test_sighup(box):
    """SIGHUP ends sentry-profd, but not under nohup."""
    target = box.napper()
    profd = box.profd([target]).wait_attached()
    profd.interrupt(signal.SIGHUP)
    profd = box.profd([target], wrapper=['nohup']).wait_attached()
    profd.signal(signal.SIGHUP)
    profd.wait_looks()
    check(profd.running(), 'nohup is of no use')
    profd.interrupt()


def test_nobody_reads_the_table(box):
    target = box.napper()
    read, write = os.pipe()
    os.close(read)
    pipe = f'exec "$@" >&{write}'
    profd = box.profd([target], table=True, wrapper=['sh', '-c', pipe, 'sh'],
                      pass_fds=[write]).wait_attached()
    os.close(write)
    profd.interrupt()
    check_sums(profd)


# The end of the broker.

def test_interrupted_at_any_moment(box):
    target = box.napper()
    for ms in (0, 1, 2, 3, 5, 8, 12, 17, 25, 35, 50, 80):
        profd = box.profd([target])
        # Until the broker blocks the signal, its default action applies.
        wait_for(lambda: int(proc_status(profd.pid, 'SigBlk') or '0', 16) &
                 1 << signal.SIGINT - 1, 'the broker to look after signals')
        time.sleep(ms / 1000)
        profd.signal(signal.SIGINT)
        check(profd.wait() in (0, 1), f'after {ms} ms: {profd.stderr}')
        check_sums(profd)
        check(harness.tracer(target.pid) == 0, 'it is traced on')


def test_target_that_ends_at_once(box):
    quickest = harness.PATIENCE_S
    for ms in (0, 5, 10, 20, 30, 40, 60):
        target = box.start(['sleep', ms / 1000 + 0.05])
        profd = box.profd([target])
        since = time.monotonic()
        status = profd.wait()
        took = time.monotonic() - since
        check(status in (0, 1, harness.ALL_LOST), f'status {status}')
        # The broker does not wait for a heartbeat without need: such waits
        # last seconds.
        quickest = min(took, quickest)
        if profd.stats_path.exists() and profd.stats_path.stat().st_size:
            check_sums(profd)
    check(quickest < 2.5 * harness.stretch(), f'{quickest} s')


def test_second_interrupt(box):
    """A second interrupt ends the wait for a server that does not answer."""
    target = box.napper()
    with socket.create_server(('127.0.0.1', 0)) as server:
        port = server.getsockname()[1]
        profd = box.profd([target], '--dsn', f'http://key@127.0.0.1:{port}/1',
                          '--shutdown-timeout', 10 * harness.PATIENCE_S,
                          output=False).wait_attached()
        profd.wait_looks()
        profd.signal(signal.SIGINT)
        connection = server.accept()
        profd.interrupt(status=harness.ALL_LOST)
        connection[0].close()
    check_sums(profd, 'sent')
    # The reason is ship's, if ship has time to report it.
    check(profd.stats['chunks']['discarded'] in ({'network_error': 1},
                                                 {'shutdown': 1}),
          f'the chunk on its way: {profd.stats["chunks"]}')


def test_full_disk(box):
    if os.geteuid() != 0:
        raise Skip('mounts are root\'s')
    directory = box.make_dir('disk')
    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=64k', 'tmpfs',
                    directory], check=True)
    try:
        target = box.napper()
        profd = box.profd([target], '--chunk-seconds', '1',
                          output=directory).wait_attached()
        # The directory's remaining contents, if an envelope came first.
        with contextlib.suppress(OSError):
            (directory / 'filler').write_bytes(bytes(64000))
        wait_for(lambda: 'cannot write an envelope' in profd.stderr,
                 'an envelope that has no room')
        kept = list(directory.glob('*.envelope'))
        profd.interrupt(status=0 if kept else harness.ALL_LOST)
        check_sums(profd)
        check(profd.stats['chunks']['discarded'].get('write_error', 0) > 0,
              f'{profd.stats["chunks"]}')
        check(not list(directory.glob('.*.part')), 'part of a file is left')
    finally:
        subprocess.run(['umount', '-l', directory], check=True)


NAMED_TRACER = r"""
import ctypes, sys, time
libc = ctypes.CDLL(None)
libc.prctl(15, b'a\xc2\x9b31m\x1b[0m')
PTRACE_SEIZE = 0x4206
if libc.ptrace(PTRACE_SEIZE, int(sys.argv[1]), None, None) == 0:
    print('ready', flush=True)
time.sleep(1000)
"""


def test_name_that_speaks_to_the_terminal(box):
    """CSI, as one byte and as two, is escaped in the output."""
    target = box.napper()
    tracer = box.start([sys.executable, '-c', NAMED_TRACER, target.pid])
    tracer.wait_line('ready')
    profd = box.profd([target])
    wait_for(lambda: r'by a\x9b31m\x1b[0m (pid' in profd.stderr,
             'the tracer\'s name')
    profd.signal(signal.SIGINT)
    profd.finish(status=1)


def test_traps_in_the_directory(box):
    """A directory that all users may write to, in which others have made FIFOs
    and links."""
    target = box.napper()
    directory = box.make_dir('everybody')
    os.mkfifo(directory / '.sentry-profd-probe')
    profd = box.profd([target], output=directory).wait_attached()
    profd.wait_looks()
    profd.interrupt()
    check(profd.chunks, 'no chunk was written')


if __name__ == '__main__':
    harness.main(globals())
