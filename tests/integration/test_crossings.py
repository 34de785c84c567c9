#!/usr/bin/python3
"""Messages that cross, as sentry-profd-unwind and -capture read them: the test takes the broker's
part, and sends messages about what a process does not know, or does not know any more
(docs/ARCHITECTURE.md has the table)."""

import os
import socket
import struct

import harness
from harness import check
from test_broker import message_types
from test_versions import msg_number

TYPES = {name: n for n, name in enumerate(message_types(), 1)}
KEEP_ID = 2**32 - 1
NOBODY = 77  # a target, and a pid above all others
NO_PID = 2**31 - 1


class Child:
    """A child of the broker, which the test is."""

    def __init__(self, box, name):
        self.socket, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(harness.PATIENCE_S)
        # The shared page of INIT, larger than each of them.
        page = os.memfd_create('page')
        os.ftruncate(page, 1 << 20)
        with end:
            self.program = box.start(
                ['sh', '-c', f'exec "$0" 3<&{end.fileno()}',
                 harness.BUILD / f'sentry-profd-{name}'], pass_fds=[end.fileno()])
        number = msg_number(harness.BUILD / f'sentry-profd-{name}')
        self.send('INIT', 'Q12I2Q', number, KEEP_ID, KEEP_ID, *[0] * 12, fds=[page])
        os.close(page)
        self.expect('READY', 'I', 0)

    def send(self, name, layout, *values, fds=()):
        body = struct.pack('=' + layout, *values)
        socket.send_fds(self.socket, [struct.pack('=II', TYPES[name], 8 + len(body)) + body], fds)

    def expect(self, name, layout, *values):
        """The next message is this one. Returns its descriptors."""
        data, fds, _, _ = socket.recv_fds(self.socket, 16384, 4)
        check(data, f'{name}: the process has ended: {self.program.stderr}')
        expected = struct.pack('=II' + layout, TYPES[name], len(data), *values)
        check(data == expected, f'{name}: {data} instead of {expected}')
        return fds

    def end(self):
        self.socket.close()
        check(self.program.wait() == 0, self.program.stderr)


def test_a_session_that_unwind_does_not_have(box):
    """Each message of the broker about a session that an earlier process had, or that has been
    forgotten."""
    unwind = Child(box, 'unwind')
    unwind.send('RECORDING_OPEN', 'IIQ33s7x', NOBODY, 5, 1000000, b'a' * 32)
    unwind.expect('RECORDING_CLOSED', 'II', NOBODY, 5)
    unwind.send('RECORDING_CLOSE', 'II', NOBODY, 5)
    unwind.send('SESSION_CLOSE', 'I', NOBODY)
    unwind.expect('SESSION_CLOSED', 'I', NOBODY)
    unwind.send('SESSION_FORGET', 'I', NOBODY)
    unwind.send('USAGE', 'II2I4Q' + '40x' * 63, 1, 0, NOBODY, 0, 1, 1, 1, 1)
    unwind.expect('USAGE_DONE', 'I', 0)
    with open('/dev/null', 'wb') as null:
        unwind.send('TABLE', '2I', 20, 0, fds=[null.fileno()])
    unwind.expect('TABLE_DONE', 'I', 0)
    unwind.end()


def test_a_target_that_capture_does_not_have(box):
    """Each message of the broker about a target that is gone, was refused or has crashed, and of
    unwind about its threads."""
    capture = Child(box, 'capture')
    link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        capture.send('RING_MAKE', 'I', 1, fds=[theirs.fileno()])
    os.close(*capture.expect('RING_MADE', 'I', 1))
    capture.send('TARGET_REMOVE', 'I', NOBODY)
    capture.send('TARGET_RATE', 'IIII', NOBODY, 1, 2, 0)
    for decision in range(3):
        capture.send('EXEC_DECIDED', 'iI', NO_PID, decision)
    link.send(struct.pack('=IIIIQQQ', TYPES['STACK_HINT'], 40, NOBODY, NO_PID, 4096, 8192, 0))
    # The unwind process is replaced meanwhile: capture makes its ring anew.
    link.close()
    link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        capture.send('RING_MAKE', 'I', 1, fds=[theirs.fileno()])
    os.close(*capture.expect('RING_MADE', 'I', 1))
    capture.send('CAPTURE_STOP', 'I', 0)
    capture.expect('CAPTURE_DONE', 'I', 0)
    capture.end()


if __name__ == '__main__':
    harness.main(globals())
