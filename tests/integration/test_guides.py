#!/usr/bin/python3
"""The commands in the guides of docs/, in the EXAMPLES of the manual pages and of --help work as
described."""

import os
import re
import shlex
import shutil
import subprocess

import harness
import yaml
from harness import BUILD, check
from test_documents import GUIDES, Guide, OURS, ROOT, run_guide

MANIFEST = ROOT / 'docs/examples/daemonset.yaml'


def examples():
    """Returns sentry-profd's commands in the EXAMPLES of the manual pages and
    in --help, each as a list of words. The part of a line that another program
    runs is removed."""
    for page in sorted((ROOT / 'docs').glob('*.[58]')):
        section = page.read_text().split('\n.Sh EXAMPLES\n')[1].split('\n.Sh ')[0]
        for line in re.findall(r'^\.Dl [$#] (.*)$', section, re.MULTILINE):
            if line.split(' ')[0] in OURS:
                yield shlex.split(re.split(r' (?:[|>]|&&) ', line)[0].replace(
                    '$(pidof redis-server)', 'PID'))
    for program in OURS:
        text = subprocess.run([BUILD / program, '--help'], capture_output=True,
                              text=True, check=True).stdout
        for line in text.split('\nexamples:\n')[1].splitlines():
            yield shlex.split(line)


def test_quickstart(box):
    run_guide(box, GUIDES[1], least=9)


def test_debug_files(box):
    run_guide(box, GUIDES[2], least=1)


def test_troubleshooting(box):
    run_guide(box, GUIDES[3], least=3)


class Examples(Guide):
    """The examples have example names, which are replaced by processes of this
    machine."""

    def __init__(self, box, path):
        super().__init__(box, path)
        # Other tests may run on the machine, too.
        self.name = f'naps-{os.getpid()}'
        shutil.copy(BUILD / 'targets/naps', self.dir / self.name)
        self.attached = None

    def filled_in(self, words):
        sample = next((d.name for d in self.dir.glob('sentry-profd-2*')), None)
        names = {'4711': 'PID', 'BEFORE': sample, 'AFTER': sample, 'DIR': sample,
                 'https://KEY@HOST/PROJECT': self.server.dsn,
                 'https://key@sentry.example.com/42': self.server.dsn,
                 'redis-server': self.name, '/var/tmp/profiles': 'profiles'}
        if 'attach' in words:
            self.attached = self.target()
        if 'attach' in words or 'detach' in words:
            names['PID'] = self.attached
        words = [names.get(word, word) for word in words]
        for i, word in enumerate(words):
            if word == '--unit':
                # systemd may not run here.
                words[i:i + 2] = ['--name', self.name]
            elif word == '--watch':
                words[i:i + 1] = []
            elif word == 'view':
                words[i:i + 1] = ['view', '--no-open']
        argv = super().filled_in(words)
        if '--name' in words:
            self.box.start([self.dir / self.name, '2', '5000', '20000']).wait_line(
                'ready')
        return argv


def test_examples(box):
    guide = Examples(box, GUIDES[1])
    (guide.dir / 'profile.html').write_text('<!doctype html>')
    found = list(examples())
    # Commands that write a file come before those that read it.
    found.sort(key=lambda words: words[0] != 'sentry-profd')
    for words in found:
        guide.run(words)
    check(len(found) > 20, f'{len(found)} commands of ours')
    page = (ROOT / 'docs/sentry-profd.conf.5').read_text()
    example = page.split('\n.Sh EXAMPLES\n')[1].split('.Bd -literal\n')[1]
    guide.write(example.split('.Ed\n')[0])
    guide.run(['sentry-profd', '--check-config'])


def test_the_manifest(box):
    """The manifest is valid YAML, its configuration is valid, and its
    capabilities are those of the manual."""
    parts = list(yaml.safe_load_all(MANIFEST.read_text()))
    check([p['kind'] for p in parts] == ['ConfigMap', 'DaemonSet'], f'{parts}')
    guide = Guide(box, GUIDES[1])
    guide.write(parts[0]['data']['sentry-profd.conf'])
    pod = parts[1]['spec']['template']['spec']
    check(pod['hostPID'], 'it sees its own processes only')
    container, = pod['containers']
    guide.run(container['command'])
    for name, command in (('livenessProbe', 'status'), ('readinessProbe', 'healthy')):
        probe = container[name]
        check(probe['exec']['command'] == ['sentry-profctl', command], f'{probe}')
        check(probe['timeoutSeconds'] > 10, 'healthy waits for 10 s')
        # Not run as a command of the guide, since this machine may lack a right.
        done = subprocess.run([BUILD / 'sentry-profctl', command, '--socket', guide.socket],
                              capture_output=True, text=True)
        check(done.returncode in (0, command == 'healthy'), f'{done}')
    given = set(container['securityContext']['capabilities']['add'])
    manual = (ROOT / 'docs/sentry-profd.8').read_text()
    section = manual.split('.Ss \\&In containers')[1].split('.Ss ')[0]
    named = set(re.findall(r'\bCAP_([A-Z_]+)', section))
    check(given >= named - {'DAC_OVERRIDE'}, f'not given: {named - given}')
    mounts = {m['name'] for m in container['volumeMounts']}
    check(mounts == {v['name'] for v in pod['volumes']}, f'{mounts}')


if __name__ == '__main__':
    harness.main(globals())
