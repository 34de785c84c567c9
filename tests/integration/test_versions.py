#!/usr/bin/python3
"""Executables of another version, as during an upgrade while the service runs."""

import os
import re
import signal
import struct
import subprocess

import harness
from harness import check, wait_for
from stranger import EXECUTABLES, copy


def msg_number(path):
    """Returns what msg_number() of the executable returns."""
    code = subprocess.run(['objdump', '-d', '--disassemble=msg_number', path], check=True,
                          capture_output=True, text=True).stdout
    return int(re.search(r'movabs \$0x([0-9a-f]+)', code)[1], 16)


def make_other(path):
    """Gives the executable another number."""
    number = struct.pack('<Q', msg_number(path))
    bytes_ = path.read_bytes()
    check(bytes_.count(number) == 1, f'{bytes_.count(number)} times')
    new = path.with_suffix('.new')
    new.write_bytes(bytes_.replace(number, bytes(8)))
    new.chmod(0o755)
    os.rename(new, path)


def test_at_the_start(box):
    directory = copy(box, EXECUTABLES)
    for name in 'sentry-profd-capture', 'sentry-profd-ship':
        make_other(directory / name)
        profd = box.profd([box.napper()], exe=directory / 'sentry-profd')
        check(profd.wait() == 1, f'{profd.stderr}')
        check(f'{directory / name} and {directory}/sentry-profd are of different versions'
              in profd.stderr, profd.stderr)


def test_while_the_daemon_runs(box):
    """One line, and no further process of this kind; everything else goes on."""
    directory = copy(box, EXECUTABLES)
    profd = box.profd([box.napper()], '--chunk-seconds', '1', exe=directory / 'sentry-profd')
    profd.wait_chunks()
    make_other(directory / 'sentry-profd-unwind')
    os.kill(profd.children_of('unwind')[0], signal.SIGKILL)
    wait_for(lambda: 'are of different versions' in profd.stderr, 'the line')
    profd.wait_looks(100)
    check(profd.stderr.count('are of different versions') == 1, profd.stderr)
    check(profd.children_of('unwind') == [] and profd.children_of('capture') != [],
          f'{profd.stderr}')
    profd.interrupt()


def test_the_end_without_a_ship(box):
    """Chunks that no process will take are lost, and nothing waits for them."""
    directory = copy(box, EXECUTABLES)
    server = box.server()
    profd = box.profd([box.napper()], '--chunk-seconds', '1', '--dsn', server.dsn, '--debug',
                      exe=directory / 'sentry-profd', env=server.env, output=None)
    # When the second one arrives, ship has told of the first one.
    wait_for(lambda: len(server.envelopes) > 1, 'two chunks arrive')
    make_other(directory / 'sentry-profd-ship')
    os.kill(profd.children_of('ship')[0], signal.SIGKILL)
    wait_for(lambda: 'are of different versions' in profd.stderr, 'the line')
    profd.wait_looks(150)
    profd.signal(signal.SIGINT)
    # Half of --shutdown-timeout.
    profd.finish(timeout=harness.PATIENCE_S / 2)
    check(profd.stats['chunks']['discarded'].get('shutdown', 0) > 0, f'{profd.stats["chunks"]}')


if __name__ == '__main__':
    harness.main(globals())
