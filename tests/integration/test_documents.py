#!/usr/bin/python3
"""The commands in README, in the guides of docs/, in the EXAMPLES of the
manual pages and of --help work as described.

A command of a guide is a line of a code block that begins with one of
sentry-profd's programs, or with one of FOREIGN. Of the latter, the part that
runs one of sentry-profd's programs is run.
"""

import os
import pathlib
import re
import shlex
import subprocess

import control
import harness
from harness import BUILD, check
from terminal import Terminal

ROOT = pathlib.Path(__file__).resolve().parents[2]
GUIDES = ('README.md', 'docs/QUICKSTART.md', 'docs/DEBUG-FILES.md',
          'docs/TROUBLESHOOTING.md')
OURS = ('sentry-profd', 'sentry-profctl')
# Commands that run other programs, and are not run here.
FOREIGN = {'apt-get', 'docker', 'kubectl', 'make', 'npx', 'sentry-cli', 'systemctl'}
# The guides' name of an image that they build.
IMAGE = 'REGISTRY/sentry-profd'


def commands(text):
    """Returns the commands of a guide's code blocks, as lists of words."""
    blocks = re.findall(r'(?:^    .*\n|^\n)+', text, re.MULTILINE)
    for line in re.sub(r'\\\n *', '', ''.join(blocks)).splitlines():
        # Text after two blanks is a description.
        line = re.split(r'  +#?|(?<=.)  ', line.strip().removeprefix('$ '))[0]
        # Text in brackets is optional.
        line = re.sub(r' \[.*\]', '', line)
        name = os.path.basename(line.split(' ')[0])
        if name in OURS or name in FOREIGN:
            yield shlex.split(line)


def our_part(words):
    """Returns the command of sentry-profd that another program runs; None:
    there is none."""
    if os.path.basename(words[0]) in OURS:
        return words
    for before in ('--', IMAGE):
        if before in words:
            part = words[words.index(before) + 1:]
            if part[:2] == ['sh', '-c']:
                part = shlex.split(part[2].split(';')[0])
            check(part[0] in OURS, f'what is {part[0]}?')
            return part
    return None


def configuration(text):
    """Returns the last block of a guide that is a configuration."""
    blocks = re.findall(r'^    \[sentry\]\n(?:    .*\n|\n)+', text, re.MULTILINE)
    return re.sub(r'^    ', '', blocks[-1], flags=re.MULTILINE)


class Guide:
    """Runs the commands of one guide, one after the other."""

    def __init__(self, box, path):
        self.box = box
        self.text = (ROOT / path).read_text()
        self.dir = box.make_dir(os.path.basename(path))
        self.server = box.server(for_files=True)
        dsn = self.dir / 'dsn'
        dsn.write_text(f'{self.server.dsn}\n')
        dsn.chmod(0o600)
        self.config = self.dir / 'profd.conf'
        # A guide without a configuration needs none.
        self.write(configuration(self.text) if '    [sentry]\n' in self.text
                   else '[sentry]\ndsn_file = dsn\n')
        self.socket = self.dir / 'profd.sock'
        self.pid = None
        self.profd = box.profd([], '--config', self.config, '--socket',
                               self.socket, env=self.server.env)
        harness.wait_for(lambda: control.listens(self.socket), 'the daemon listens')

    def write(self, text):
        """Writes a configuration of a guide, for the server and the users of the test."""
        text = re.sub(r'^dsn(_file)? = .*', f'dsn_file = {self.dir}/dsn', text,
                      flags=re.MULTILINE)
        text = re.sub('^user = api$', 'user = nobody', text, flags=re.MULTILINE)
        self.config.write_text(text)
        self.config.chmod(0o600)

    def target(self):
        # It runs a fifth of the time, so a recording of a second has some of that.
        return str(self.box.target('naps', 2, 5000, 20000).pid)

    def filled_in(self, words):
        """Returns the command with a process, a server and files in place of
        the guide's names."""
        made = [d.name for d in self.dir.glob('sentry-profd-2*')]
        for i, word in enumerate(words):
            if word == 'PID' or words[i - 1] == '--pid':
                # The line before has attached what a line detaches.
                self.pid = self.pid if 'detach' in words else self.target()
                words[i] = self.pid
            elif words[i - 1] == '--duration':
                words[i] = '1'
            elif word == 'COMMAND':
                words[i] = 'true'
            elif word == 'https://KEY@SERVER/PROJECT':
                words[i] = self.server.dsn
            elif re.fullmatch(r'sentry-profd-\d+-\d+', word):
                # The file of the last run, if there was one.
                words[i] = made[0] if made else word
            elif word.startswith('/tmp/'):
                words[i] = word.removeprefix('/tmp/')
        name = os.path.basename(words[0])
        if name == 'sentry-profd':
            if '--check-config' in words or len(words) == 1:
                words[1:] = ['--check-config', '--config', self.config]
            # A command that runs until ^C runs for a second here.
            elif '--duration' not in words and '--' not in words:
                words[1:1] = ['--duration', '1']
        return [BUILD / name, *words[1:]]

    def show(self, argv):
        """Runs a command that needs a terminal, until its first lines."""
        terminal = Terminal(self.box, SENTRY_PROFD_SOCKET=str(self.socket))
        terminal.run(*argv)
        terminal.wait(f'process {argv[-1]} ' if argv[-1] != 'top'
                      else 'targets, by samples')
        terminal.type('q')
        terminal.wait_status()

    def run(self, words):
        argv = self.filled_in(list(words))
        if words[1:2] == ['top']:
            self.show(argv)
            return
        ran = subprocess.run(
            argv, cwd=self.dir, capture_output=True, text=True,
            env={**os.environ, **self.server.env,
                 'SENTRY_PROFD_SOCKET': str(self.socket)})
        # doctor's findings on this machine do not matter here.
        allowed = (0, 3) if 'doctor' in words else (0,)
        check(ran.returncode in allowed,
              f'{shlex.join(words)}, as {argv}: status {ran.returncode}: '
              f'{ran.stderr[-500:]}')


def run_guide(box, path, least):
    guide = Guide(box, path)
    n = 0
    for words in commands(guide.text):
        part = our_part(words)
        if part:
            guide.run(part)
            n += 1
    check(n >= least, f'{n} commands of ours')


def test_readme(box):
    run_guide(box, GUIDES[0], least=7)


def test_a_command_that_is_wrong_is_found(box):
    guide = Guide(box, GUIDES[1])
    for words in (['sentry-profd', '--no-such-option'],
                  ['sentry-profctl', 'convert', 'not-there', '-o', 'x.html']):
        try:
            guide.run(words)
        except harness.Failure:
            continue
        check(False, f'{words} is said to work')


if __name__ == '__main__':
    harness.main(globals())
