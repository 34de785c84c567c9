"""Spool: the server goes away and comes back, and ship is killed at random moments.

First the server is down, and the targets fill the spool as fast as they can. Then daemons
one after another have ships that are killed, with a server that comes and goes. At last
the server stays, and the spool empties, with the usual pauses: 100 ms after each chunk.

Every chunk has arrived, and none came again after ship had read that it was accepted.
ship has at most 32 MB of memory (not compared with sanitized executables: make storm
T=spool uses ordinary ones).
"""

import collections
import contextlib
import os
import signal
import time

import sanitized
from account import Account, spooled_ids
from harness import PATIENCE_S, Failure, check, wait_for
from test_delivery_answers import sleepers

SHORT_S = 4

# So many fill the spool, and so many have daemons whose ships are killed.
TARGETS, FEW = 100, 8
RSS_MAX_BYTES = 32 << 20

# In a second of the storm: so that most of its time empties the spool.
CHUNKS, KILLS = 4, 0.1
KILLS_MIN = 3
# The interval before a daemon's next ship grows, so each daemon has only this many kills.
KILLS_A_RUN = 6
# The pause after a chunk, and as much again for a busy machine.
DRAIN_S = 0.2


class Storm:
    def __init__(self, box, rng):
        self.box, self.rng = box, rng
        self.spool = box.dir / 'spool'
        self.server = box.server()
        self.runs = []
        self.away = False
        self.figures = collections.Counter()

    def start(self, targets):
        profd = self.box.profd(targets, '--chunk-seconds', '1', '--dsn',
                               self.server.dsn, '--spool', self.spool,
                               env=self.server.env)
        self.runs.append(profd)
        return profd

    def toggle(self):
        self.away = not self.away
        self.figures['outages'] += self.away
        self.server.tell(do='down' if self.away else 'up')

    def fill(self, targets, n):
        self.toggle()
        profd = self.start(targets)
        wait_for(lambda: len(spooled_ids(self.spool)) >= n, f'{n} chunks in the spool',
                 PATIENCE_S + DRAIN_S * n)
        profd.interrupt()
        self.figures['chunks in the full spool'] = len(spooled_ids(self.spool))

    def progress(self):
        """Returns a value that changes when a chunk arrives or is spooled."""
        size = 0
        with contextlib.suppress(FileNotFoundError):
            size = (self.server.dir / 'requests.jsonl').stat().st_size
        return size, spooled_ids(self.spool)

    def kill_ship(self, profd):
        """Perhaps changes the server, waits for a while, and kills ship."""
        if self.rng.random() < 0.5:
            self.toggle()
        if self.rng.random() < 0.7:
            # In the middle of the chunks of a second.
            before = self.progress()
            wait_for(lambda: self.progress() != before, 'something happens')
            time.sleep(self.rng.uniform(0, 0.03))
        else:
            time.sleep(self.rng.uniform(0, 0.5))
        if self.rng.random() < 0.3:
            self.toggle()
            time.sleep(self.rng.uniform(0, 0.02))
        pid, = wait_for(lambda: profd.helpers()['ship'], 'ship')
        os.kill(pid, signal.SIGKILL)
        self.figures['kills of ship'] += 1

    def kill_ships(self, targets, n):
        while n > 0:
            profd = self.start(targets)
            for _ in range(min(n, KILLS_A_RUN)):
                self.kill_ship(profd)
                n -= 1
            profd.interrupt()

    def drain(self, targets):
        if self.away:
            self.toggle()
        began, n = time.monotonic(), len(spooled_ids(self.spool))
        # When the server has answered its first chunk, the chunks in the spool are due.
        profd = self.start(targets)
        wait_for(lambda: not spooled_ids(self.spool), 'the spool is empty',
                 PATIENCE_S + DRAIN_S * n)
        profd.interrupt()
        self.figures['chunks out of the spool at the end'] = n
        self.figures['seconds for these'] = round(time.monotonic() - began)

    def check_end(self):
        peak = max(p.stats['rss_peak_bytes']['ship'] for p in self.runs)
        self.figures['memory of ship at most, MB'] = round(peak / 2**20, 1)
        check(sanitized.is_sanitized() or peak < RSS_MAX_BYTES, f'ship had {peak} bytes')
        a = Account(self.runs, [self.server], self.spool, sure=False)
        self.figures['chunks'] = len(a.made)
        self.figures['of these came again'] = a.again
        check(a.taken == a.made and not a.discarded,
              f'{len(a.made)} were made, {len(a.taken)} taken: {a.discarded}')
        check(a.again <= self.figures['kills of ship'] + self.figures['outages'],
              'chunks came again')


def run(box, seconds, rng):
    storm = Storm(box, rng)
    n = CHUNKS * seconds
    targets = sleepers(box, min(n, TARGETS))
    try:
        storm.fill(targets, n)
        storm.kill_ships(targets[:FEW], max(KILLS_MIN, int(KILLS * seconds)))
        storm.drain(targets[:1])
        storm.check_end()
    except Failure as e:
        raise Failure(f'{e}; after {dict(storm.figures)}') from e
    return storm.figures
