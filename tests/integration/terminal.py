"""A terminal for tests: a pane of tmux, with input and screen."""

import shlex
import subprocess

import harness
from harness import Skip, check, wait_for


class Terminal:
    """A shell in a terminal of 80x24. The tmux server ends with the box."""

    def __init__(self, box, width=80, height=24, **environment):
        directory = box.make_dir('tmux')
        self.socket = directory / 'socket'
        try:
            # The server runs in the foreground, so that it is a program of the
            # box.
            self.server = box.start(
                ['tmux', '-S', self.socket, '-f', '/dev/null', '-D'],
                env=harness.environment(LANG='C.UTF-8', LC_ALL='C.UTF-8',
                                        **environment))
        except FileNotFoundError:
            raise Skip('no tmux') from None
        wait_for(lambda: self.socket.exists() or not self.server.running(),
                 'tmux listens')
        wait_for(lambda: self.tmux('new-session', '-d', '-x', width, '-y',
                                   height, 'exec sh', check=False)
                 .returncode == 0, 'a session')
        wait_for(lambda: self.screen()[0].strip() in ('$', '#'), 'a prompt')
        self.before = self.settings()
        self.n = 0  # commands that were run

    def tmux(self, *args, **options):
        return subprocess.run(
            ['tmux', '-S', self.socket, *map(str, args)], text=True,
            capture_output=True, **{'check': True, **options})

    def show(self, what):
        """Returns a variable of the pane, as tmux has it."""
        return self.tmux('display-message', '-p',
                         f'#{{{what}}}').stdout.strip()

    def settings(self):
        """Returns the settings that a program must restore."""
        with open(self.show('pane_tty'), 'rb') as tty:
            modes = subprocess.run(['stty', '-a'], stdin=tty, check=True,
                                   capture_output=True).stdout
        return modes, self.show('cursor_flag'), self.show('alternate_on')

    def type(self, *keys):
        """Types characters, or keys by name, such as Enter."""
        self.tmux('send-keys', *keys)

    def run(self, *argv):
        self.n += 1
        # The command itself is on the screen, too, so it must differ from the
        # printed text.
        self.type('clear; ' + shlex.join(map(str, argv)) +
                  f'; echo "ended" {self.n} $?', 'Enter')

    def screen(self, *options):
        """Returns the visible lines."""
        return self.tmux('capture-pane', '-p', *options).stdout.split('\n')

    def wait(self, text):
        """Waits for a line with this text; returns all of them."""
        def look():
            lines = self.screen()
            return any(text in line for line in lines) and lines
        try:
            return wait_for(look, f'"{text}" on the screen')
        except harness.Failure as failure:
            seen = '\n'.join(self.screen())
            raise harness.Failure(f'{failure}\n{seen}') from None

    def wait_status(self, status=0):
        """Waits for the end of the command. Checks that the terminal is as
        before."""
        lines = self.wait(f'ended {self.n} ')
        check(f'ended {self.n} {status}' in lines, f'{lines}')
        wait_for(lambda: self.settings() == self.before,
                 f'the terminal as it was: {self.before}')
        return lines

    def pid(self):
        """Returns the pid of the program that runs in it now."""
        return int(harness.wait_for(
            lambda: ' '.join(map(str, harness.children(
                int(self.show('pane_pid'))))), 'a program'))
