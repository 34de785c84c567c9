#!/usr/bin/python3
"""The test plays systemd's side of NOTIFY_SOCKET: the daemon reports that it
is ready, its status, and that it stops, and answers the watchdog as long as
samples are taken.
"""

import os
import signal
import socket

import harness
import stranger
from harness import PATIENCE_S, check, wait_for


class Manager:
    """The socket, and its messages so far."""

    def __init__(self, box, abstract=False):
        path = str(box.make_dir('notify') / 'socket')
        self.name = '@' + path if abstract else path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind('\0' + path if abstract else path)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket.settimeout(PATIENCE_S)
        self.said = []
        self.senders = set()

    def env(self, **extra):
        return harness.environment(NOTIFY_SOCKET=self.name, **extra)

    def take(self):
        data, control, _, _ = self.socket.recvmsg(4096, 64)
        self.senders.add(int.from_bytes(control[0][2][:4], 'little'))
        self.said += data.decode().splitlines()

    def wait(self, line, n=1):
        """Waits until this message has come n more times."""
        n += self.said.count(line)
        while self.said.count(line) < n:
            self.take()

    def wait_once(self, line):
        """Waits until this message has come at least once."""
        while line not in self.said:
            self.take()

    def drain(self):
        """Receives the messages so far, without waiting."""
        self.socket.setblocking(False)
        try:
            while True:
                self.take()
        except BlockingIOError:
            self.socket.settimeout(PATIENCE_S)


def test_ready_status_stopping(box):
    manager = Manager(box)
    profd = box.profd([box.target('shares')], env=manager.env())
    manager.wait_once('READY=1')
    check(len(profd.helpers()['capture']) == 1, 'ready without a sampler')
    manager.wait_once('STATUS=1 process profiled')
    check('STOPPING=1' not in manager.said, manager.said)
    profd.signal(signal.SIGTERM)
    manager.wait_once('STOPPING=1')
    profd.finish()
    check(manager.said.count('READY=1') == 1, manager.said)
    # No watchdog is configured.
    check('WATCHDOG=1' not in manager.said, manager.said)
    check(manager.senders == {profd.pid}, manager.senders)


def test_reload(box):
    """The configuration is read again, with and without a fault."""
    manager = Manager(box)
    path = box.make_dir('config') / 'profd.conf'
    path.write_text('[profiler]\nrate_hz = 97\n')
    path.chmod(0o600)
    profd = box.profd([], '--config', path, '--socket',
                      box.make_dir('run') / 'socket', env=manager.env())
    for text in ('rate_hz = 89\n', 'rate_hz = none\n'):
        manager.wait_once('READY=1')
        manager.said.clear()
        path.write_text('[profiler]\n' + text)
        profd.signal(signal.SIGHUP)
        manager.wait_once('RELOADING=1')
        check('READY=1' not in manager.said, manager.said)
        check(any(line.startswith('MONOTONIC_USEC=') for line in manager.said),
              manager.said)
    manager.wait_once('READY=1')
    check(profd.running(), profd.stderr)
    profd.interrupt()


def test_abstract_name(box):
    manager = Manager(box, abstract=True)
    profd = box.profd([box.target('shares')], env=manager.env())
    manager.wait_once('READY=1')
    profd.wait_attached().interrupt()


def test_wrong_environment(box):
    profd = box.profd([box.target('shares')],
                      env=harness.environment(NOTIFY_SOCKET='socket'))
    profd.wait_attached().interrupt()
    check('NOTIFY_SOCKET' in profd.stderr, profd.stderr)


def test_watchdog(box):
    """The watchdog is answered as long as samples are taken. They are not
    taken while capture is stopped and cannot be killed; later its successor
    takes them.
    """
    manager = Manager(box)
    profd = box.profd([box.target('shares')],
                      env=manager.env(WATCHDOG_USEC='200000'))
    manager.wait_once('STATUS=1 process profiled')
    manager.wait('WATCHDOG=1', 3)
    # The broker replaces capture, which it watches more closely than systemd
    # does.
    capture, = profd.helpers()['capture']
    os.kill(capture, signal.SIGSTOP)
    wait_for(lambda: profd.helpers()['capture'] not in ([], [capture]),
             'another sampler')
    manager.drain()
    manager.wait('WATCHDOG=1')
    profd.interrupt()


def test_no_sampler_no_answer(box):
    """capture cannot be restarted. The broker runs on, but no longer answers
    the watchdog, so systemd restarts the service.
    """
    manager = Manager(box)
    bin_dir = stranger.copy(box, stranger.EXECUTABLES)
    target = box.target('shares')
    profd = box.profd([target], exe=bin_dir / 'sentry-profd',
                      env=manager.env(WATCHDOG_USEC='100000'))
    manager.wait_once('STATUS=1 process profiled')
    profd.wait_attached()
    capture, = profd.helpers()['capture']
    (bin_dir / 'sentry-profd-capture').unlink()
    (bin_dir / 'sentry-profd-capture').write_text('nothing to execute')
    (bin_dir / 'sentry-profd-capture').chmod(0o755)
    os.kill(capture, signal.SIGKILL)
    # The broker tries, fails and tries again: its loop works.
    wait_for(lambda: 'starting it again' in profd.stderr, 'the end of capture')
    wait_for(lambda: not profd.helpers()['capture'], 'no sampler')
    # One answer may still be due for the last heartbeat of the dead process.
    manager.drain()
    before = turns(profd.pid)
    wait_for(lambda: turns(profd.pid) >= before + 20, 'turns of the broker')
    answers = manager.said.count('WATCHDOG=1')
    manager.drain()
    check(manager.said.count('WATCHDOG=1') <= answers + 1, manager.said)
    profd.signal(signal.SIGKILL)
    profd.wait()


def turns(pid):
    """Returns how often the process has waited."""
    return int(harness.proc_status(pid, 'voluntary_ctxt_switches'))


if __name__ == '__main__':
    harness.main(globals())
