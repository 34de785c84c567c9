#!/usr/bin/python3
"""The commands in README and in the guides of docs/ do what is said there.

A command is a line of a code block that begins with one of our programs, or
with one of FOREIGN. Of the latter the part that runs one of ours is run.
"""

import os
import pathlib
import re
import shlex
import subprocess

import harness
import yaml
from harness import BUILD, check

ROOT = pathlib.Path(__file__).resolve().parents[2]
GUIDES = ('README.md', 'docs/QUICKSTART.md', 'docs/DEBUG-FILES.md',
          'docs/TROUBLESHOOTING.md')
OURS = ('sentry-profd', 'sentry-profctl')
# What runs other programs than ours, and is not run here.
FOREIGN = {'apt-get', 'docker', 'kubectl', 'make', 'npx', 'sentry-cli', 'systemctl'}
# As the guides call an image that they make.
IMAGE = 'REGISTRY/sentry-profd'
MANIFEST = ROOT / 'docs/examples/daemonset.yaml'


def commands(text):
    """The commands of a guide's code blocks, as lists of words."""
    blocks = re.findall(r'(?:^    .*\n|^\n)+', text, re.MULTILINE)
    for line in re.sub(r'\\\n *', '', ''.join(blocks)).splitlines():
        # Behind two blanks stands what it does.
        line = re.split(r'  +#?|(?<=.)  ', line.strip().removeprefix('$ '))[0]
        # What may be left out.
        line = re.sub(r' \[.*\]', '', line)
        name = os.path.basename(line.split(' ')[0])
        if name in OURS or name in FOREIGN:
            yield shlex.split(line)


def our_part(words):
    """The command of ours that another program runs; None: it runs none."""
    if os.path.basename(words[0]) in OURS:
        return words
    for before in ('--', IMAGE):
        if before in words:
            part = words[words.index(before) + 1:]
            check(part[0] in OURS, f'what is {part[0]}?')
            return part
    return None


def configuration(text):
    """The last block of a guide that is one."""
    blocks = re.findall(r'^    \[sentry\]\n(?:    .*\n|\n)+', text, re.MULTILINE)
    return re.sub(r'^    ', '', blocks[-1], flags=re.MULTILINE)


class Guide:
    """Where the commands of one guide are run, one after the other."""

    def __init__(self, box, path):
        self.box = box
        self.text = (ROOT / path).read_text()
        self.dir = box.make_dir(os.path.basename(path))
        self.server = box.server(for_files=True)
        dsn = self.dir / 'dsn'
        dsn.write_text(f'{self.server.dsn}\n')
        dsn.chmod(0o600)
        self.config = self.dir / 'profd.conf'
        # Without one in the guide there is nothing to be said about it.
        self.write(configuration(self.text) if '    [sentry]\n' in self.text
                   else '[sentry]\ndsn_file = dsn\n')
        self.socket = self.dir / 'profd.sock'
        self.profd = box.profd([], '--config', self.config, '--socket',
                               self.socket, env=self.server.env)
        harness.wait_for(self.socket.exists, 'the daemon listens')

    def write(self, text):
        """A configuration of a guide, for the server of the test."""
        text = re.sub(r'^dsn(_file)? = .*', f'dsn_file = {self.dir}/dsn', text,
                      flags=re.MULTILINE)
        self.config.write_text(text)
        self.config.chmod(0o600)

    def target(self):
        return str(self.box.target('naps', 2, 500, 2000).pid)

    def filled_in(self, words):
        """With a process, a server and files where the guide has names."""
        made = [d.name for d in self.dir.glob('sentry-profd-2*')]
        for i, word in enumerate(words):
            if word == 'PID' or words[i - 1] == '--pid':
                words[i] = self.target()
            elif words[i - 1] == '--duration':
                words[i] = '1'
            elif word == 'COMMAND':
                words[i] = 'true'
            elif word == 'https://KEY@SERVER/PROJECT':
                words[i] = self.server.dsn
            elif re.fullmatch(r'sentry-profd-\d+-\d+', word):
                # That of the run before, if there was one.
                words[i] = made[0] if made else word
            elif word.startswith('/tmp/'):
                words[i] = word.removeprefix('/tmp/')
        name = os.path.basename(words[0])
        if name == 'sentry-profd':
            if '--check-config' in words or len(words) == 1:
                words[1:] = ['--check-config', '--config', self.config]
            # What runs until ^C runs for a second here.
            elif '--duration' not in words and '--' not in words:
                words[1:1] = ['--duration', '1']
        return [BUILD / name, *words[1:]]

    def run(self, words):
        argv = self.filled_in(list(words))
        ran = subprocess.run(
            argv, cwd=self.dir, capture_output=True, text=True,
            env={**os.environ, **self.server.env,
                 'SENTRY_PROFD_SOCKET': str(self.socket)})
        # What doctor finds on this machine is another matter.
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


def test_quickstart(box):
    run_guide(box, GUIDES[1], least=9)


def test_debug_files(box):
    run_guide(box, GUIDES[2], least=1)


def test_troubleshooting(box):
    run_guide(box, GUIDES[3], least=3)


def test_a_command_that_is_wrong_is_found(box):
    guide = Guide(box, GUIDES[1])
    for words in (['sentry-profd', '--no-such-option'],
                  ['sentry-profctl', 'convert', 'not-there', '-o', 'x.html']):
        try:
            guide.run(words)
        except harness.Failure:
            continue
        check(False, f'{words} is said to work')


def test_the_manifest(box):
    """It is YAML, its configuration holds, and its capabilities are those that
    the manual names."""
    parts = list(yaml.safe_load_all(MANIFEST.read_text()))
    check([p['kind'] for p in parts] == ['ConfigMap', 'DaemonSet'], f'{parts}')
    guide = Guide(box, GUIDES[1])
    guide.write(parts[0]['data']['sentry-profd.conf'])
    pod = parts[1]['spec']['template']['spec']
    check(pod['hostPID'], 'it sees its own processes only')
    container, = pod['containers']
    guide.run(container['command'])
    given = set(container['securityContext']['capabilities']['add'])
    manual = (ROOT / 'docs/sentry-profd.8').read_text()
    section = manual.split('.Ss \\&In containers')[1].split('.Ss ')[0]
    named = set(re.findall(r'\bCAP_([A-Z_]+)', section))
    check(given >= named - {'DAC_OVERRIDE'}, f'not given: {named - given}')
    mounts = {m['name'] for m in container['volumeMounts']}
    check(mounts == {v['name'] for v in pod['volumes']}, f'{mounts}')


if __name__ == '__main__':
    harness.main(globals())
