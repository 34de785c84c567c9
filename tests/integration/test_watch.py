#!/usr/bin/python3
"""sentry-profctl status --watch on a terminal."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios

import harness
from harness import BUILD, check, wait_for
from test_control import listening, sleeper


class Terminal:
    """A program on a terminal of its own, and the terminal's contents."""

    def __init__(self, argv, columns):
        self.text = ''
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, self.size(columns))
            os.execv(argv[0], [str(a) for a in argv])

    @staticmethod
    def size(columns):
        return struct.pack('HHHH', 24, columns, 0, 0)

    def resize(self, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, self.size(columns))

    def wait_for(self, pattern):
        """Waits for text that was not there at the last call."""
        def seen():
            while select.select([self.fd], [], [], 0)[0]:
                self.text += os.read(self.fd, 65536).decode()
            found = re.search(pattern, self.text, re.S)
            if found:
                self.text = self.text[found.end():]
            return found
        return wait_for(seen, pattern)

    def interrupt(self):
        """Types ^C; returns the exit status."""
        os.write(self.fd, b'\x03')
        return os.waitpid(self.pid, 0)[1]


def test_watch_on_a_terminal(box):
    """The output is as wide as the terminal, and waits for the next daemon."""
    target = sleeper(box)
    profd, ctl = listening(box, [target])
    profd.wait_attached()
    watch = Terminal([BUILD / 'sentry-profctl', 'status', '--watch=1',
                      '--socket', ctl.path], 200)
    try:
        watch.wait_for(rf'\x1b\[Jsentry-profd [^\n]*pid {profd.pid}.*'
                       r'BYTES  BY  LAST ERROR\r\n')
        watch.resize(80)
        watch.wait_for(r'BYTES  BY  \r\n  LAST ERROR\r\n')
        profd.interrupt()
        watch.wait_for('has closed the connection: it is ending or has died')
        other = box.profd([target], '--socket', ctl.path)
        watch.wait_for(rf'\x1b\[Jsentry-profd [^\n]*pid {other.pid}')
        other.wait_attached()
    finally:
        status = watch.interrupt()
        os.close(watch.fd)
    check(os.WTERMSIG(status) == signal.SIGINT, f'{status}')
    other.interrupt()


if __name__ == '__main__':
    harness.main(globals())
