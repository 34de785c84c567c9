"""Soak: hours of ordinary work and ordinary faults, after which the daemon has
the memory, descriptors and threads that it had at the start.

It is churn at an easy pace: 20 processes of three users are profiled, end and
are started again; they are attached, detached and become other programs; the
configuration changes; the daemon's processes are killed; the server is down,
mute, refuses, is limited. Every minute there is a calm, in which what has to
hold at any time is compared (churn.py), and memory, descriptors and threads of
the daemon's processes are read. At the end each chunk is accounted for, and the
targets are let go.

The figures: of each kind of process at the start, in the middle and at the end
(of processes of one kind the largest), and the slope of the broker's memory.
With sanitized executables memory is not compared, because freed memory waits
for its reuse there: make storm T=soak uses ordinary ones.
"""

import statistics
import time

import churn
import harness
import sanitized
import stranger
from harness import check

SHORT_S = 5

WORKERS, ALONE = 14, 6
PACE_S = (0.2, 2)
CALM_S = 60

# What a process may have more at the end than at the start: one file that is
# being read, one connection; memory that malloc keeps.
MORE = {'memory, KB': 8192, 'descriptors': churn.DESCRIPTORS, 'threads': 1}
SHARE = 1.25

HOUR_S = 3600

OPS = {'restart': 10, 'exec': 2, 'little_wave': 4, 'reload': 3,
       'attach': 4, 'detach': 4, 'rude': 2, 'kill': 3, 'server_fault': 2}


class Soak(churn.Churn):
    def __init__(self, box, rng):
        self.samples = []
        super().__init__(box, rng, WORKERS, ALONE)

    def new_dsn(self):
        """One server, so that there are as many ships at any time."""
        return self.dsn()

    def little_wave(self):
        maker = self.rng.choice(self.waves)
        n = self.rng.randint(1, 10)
        maker.tell('fork', n, self.rng.choice(('plain', 'comm', 'title')))
        self.figures['births'] += n
        if maker.left > 50:
            self.thin_out()

    def server_fault(self):
        """The next calm repairs the server."""
        self.figures['server faults'] += 1
        self.server.up()
        fault = self.rng.choice(('down', 'mute', 500, 502, 429, 400))
        if isinstance(fault, str):
            self.server.tell(do=fault)
        else:
            headers = {'Retry-After': '2'} if fault == 429 else {}
            self.server.tell(script=[
                {'status': fault, 'headers': headers}] * 20)

    def check_waiting(self):
        """A lack of descriptors is churn's."""

    def calm(self, before=None):
        self.server.up()
        self.server.tell(script=[])
        super().calm(before)
        self.sample()

    def sample(self):
        """The broker's own and its children's, of each kind the largest."""
        pids = {'broker': [self.profd.pid], **self.profd.helpers()}
        found = {}
        for kind, of in pids.items():
            for pid in of:
                one = {
                    'memory, KB': int((harness.proc_status(
                        pid, 'RssAnon') or '0').split()[0]),
                    'descriptors': len(harness.descriptors(pid)),
                    'threads': len(harness.threads(pid))}
                for what, n in one.items():
                    key = f'{kind}: {what}'
                    found[key] = max(found.get(key, 0), n)
        self.samples.append((time.monotonic(), found))

    def values(self, key, part):
        """Of the first, second or last third of the calms, the median."""
        n = max(1, len(self.samples) // 3)
        at = {'start': 0, 'middle': (len(self.samples) - n) // 2,
              'end': len(self.samples) - n}[part]
        return statistics.median(s.get(key, 0)
                                 for _, s in self.samples[at:at + n])

    def compare(self):
        """The first calm is left out: caches were not filled yet."""
        if len(self.samples) > 3:
            del self.samples[0]
        grown = []
        for key in self.samples[-1][1]:
            of = [self.values(key, part) for part in ('start', 'middle', 'end')]
            self.figures[f'{key} at start, middle, end'] = \
                ' / '.join(f'{n:.0f}' for n in of)
            what = key.partition(': ')[2]
            if sanitized.is_sanitized() and what.startswith('memory'):
                continue
            if of[2] > of[0] * SHARE + MORE[what]:
                grown.append(f'{key}: {of[0]:.0f}, then {of[2]:.0f}')
        if len(self.samples) > 2:
            times = [at / HOUR_S for at, _ in self.samples]
            memory = [s['broker: memory, KB'] for _, s in self.samples]
            self.figures['broker: memory, KB an hour'] = round(
                statistics.linear_regression(times, memory).slope)
        check(not grown, f'grown: {grown}')


def run(box, seconds, rng):
    stranger.need_root()
    soak = Soak(box, rng)
    soak.calm()
    with soak.explained():
        soak.go_on(seconds, OPS, PACE_S, CALM_S)
        soak.compare()
        soak.end()
    return soak.figures
