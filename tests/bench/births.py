"""Measures how much longer a script of many short processes (git commands) takes while
the daemon profiles them. Runs with and without the daemon take turns, so that a machine
that gets slower affects both equally.
"""

import dataclasses
import shutil
import signal
import subprocess
import time
from statistics import median

import harness
import report

NAME = 'births'
PAIRS = 10
# Each has seven commands; together they take some seconds.
ROUNDS = 150

# (label, keys of the section besides the defaults, the limit: how many times as long the
# script may take)
LIMITS = [
    ('min_age_seconds by default', {}, 1.05),
    ('min_age_seconds = 0', {'min_age_seconds': 0}, 1.10),
]

SCRIPT = '''
set -e
git init -q repository
cd repository
git config user.name nobody
git config user.email nobody@example.org
i=0
while [ $i -lt {rounds} ]; do
	echo $i >file$((i % 20))
	git add .
	git commit -q -m "the commit $i"
	git log -1 --format=%H >../commit
	git status --short >../status
	git diff HEAD~0 >../diff
	git rev-parse HEAD >../head
	git branch -q "branch$i"
	i=$((i + 1))
done
'''


@dataclasses.dataclass
class Figures:
    """The figures of one configuration: the seconds of each pair's runs, and the share of
    a processor that the daemon used."""
    without: list = dataclasses.field(default_factory=list)
    profiled: list = dataclasses.field(default_factory=list)
    shares: list = dataclasses.field(default_factory=list)
    chunks: int = 0

    @property
    def ratios(self):
        return [p / w for p, w in zip(self.profiled, self.without)]


class Script:
    """The script, with its own copies of the shell and of git, so that the section matches
    no other process."""

    def __init__(self, box, rounds):
        self.box = box
        self.bin = box.make_dir('bin')
        for name in ('dash', 'git'):
            shutil.copy(shutil.which(name), self.bin / name)
        self.text = SCRIPT.format(rounds=rounds)
        self.env = harness.environment(
            PATH=f'{self.bin}:/usr/bin:/bin', GIT_CONFIG_NOSYSTEM='1',
            GIT_CONFIG_GLOBAL='/dev/null', GIT_CONFIG_COUNT='1',
            GIT_CONFIG_KEY_0='gc.auto', GIT_CONFIG_VALUE_0='0')

    def seconds(self):
        place = self.box.make_dir('work')
        began = time.monotonic()
        subprocess.run([self.bin / 'dash', '-c', self.text], cwd=place,
                       env=self.env, check=True, stdout=subprocess.DEVNULL)
        took = time.monotonic() - began
        shutil.rmtree(place)
        return took


class Daemon:
    """A daemon as a service, with a section for the programs in bin_dir and the default
    CPU budget."""

    def __init__(self, box, bin_dir, keys):
        place = box.make_dir('daemon')
        self.output = place / 'output'
        self.output.mkdir()
        config = place / 'profd.conf'
        keys = {'exe': f'{bin_dir}/*', 'profile_session_sample_rate': 1,
                'autostart': 'yes', **keys}
        config.write_text('[target "births"]\n' + ''.join(
            f'{k} = {v}\n' for k, v in keys.items()))
        config.chmod(0o600)
        self.program = box.start(
            [harness.BUILD / 'sentry-profd', '--config', config, '--output',
             self.output, '--spool', 'none', '--socket', place / 'socket'])
        harness.wait_for(lambda: (place / 'socket').exists(), 'the daemon')
        self.before = self.used()

    def used(self):
        """Returns the CPU time of the daemon and its children, in s."""
        pids = [self.program.pid] + harness.children(self.program.pid)
        return sum(harness.cpu_seconds(pid) for pid in pids)

    def end(self):
        """Ends the daemon. Returns its CPU time since the start and its number of chunks."""
        used = self.used() - self.before
        self.program.signal(signal.SIGTERM)
        self.program.wait()
        return used, len(list(self.output.iterdir()))


def run_profiled(box, script, keys, figures):
    daemon = Daemon(box, script.bin, keys)
    took = script.seconds()
    used, chunks = daemon.end()
    figures.profiled.append(took)
    figures.shares.append(used / took)
    figures.chunks += chunks


def run(box, smoke=False):
    """Returns [Figures], in the order of LIMITS; None if git is not installed."""
    if shutil.which('git') is None or shutil.which('dash') is None:
        return None
    script = Script(box, 2 if smoke else ROUNDS)
    all_figures = [Figures() for _ in LIMITS]
    for pair in range(1 if smoke else PAIRS):
        for (_, keys, _), figures in zip(LIMITS, all_figures):
            turns = [lambda: figures.without.append(script.seconds()),
                     lambda: run_profiled(box, script, keys, figures)]
            for turn in turns[::-1 if pair % 2 else 1]:
                turn()
    return all_figures


def wanted(all_figures):
    """Returns requirements as report.requirements()."""
    found = []
    for (name, _, limit), figures in zip(LIMITS, all_figures or ()):
        ratio = median(figures.ratios)
        found.append((f'short processes: {name}', f'<= {limit:.2f} times as long',
                      f'{ratio:.3f} ({min(figures.ratios):.3f} to '
                      f'{max(figures.ratios):.3f})', ratio <= limit))
    return found


def text(all_figures):
    head = f'### Many short processes (`T={NAME}`)\n\n'
    if all_figures is None:
        return head + 'Not measured: git or dash is not installed.\n'
    rows = [[name, f'{median(f.without):.2f}', f'{median(f.profiled):.2f}',
             f'{median(f.ratios):.3f}', ' '.join(f'{r:.3f}' for r in f.ratios),
             f'{100 * median(f.shares):.1f} %', str(f.chunks)]
            for (name, _, _), f in zip(LIMITS, all_figures)]
    return (head + 'A script of git commands, in pairs of runs without and with '
            'the daemon. All other settings are the defaults.\n\n' +
            report.table(['setting', 'without, s', 'with, s',
                          'with / without, median', 'with / without, each pair',
                          'CPU of the daemon, of a processor', 'chunks'], rows))
