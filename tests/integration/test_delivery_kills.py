#!/usr/bin/python3
"""ship is killed at random moments, while the server goes away and comes back.
In the end every chunk has arrived, and none was sent again after ship had read
that it was accepted. SHIP_KILLS in the environment sets the number of kills
(10; make soak: 200), SEED the moments.
"""

import contextlib
import os
import random
import time

import harness
import test_kill
from account import Account, spooled_ids
from harness import Failure, check, wait_for
from test_delivery_answers import sleepers

KILLS = int(os.environ.get('SHIP_KILLS') or 10)
SEED = int(os.environ.get('SEED') or random.randrange(10**6))

# The interval before a daemon's next ship grows, so each daemon has only this
# many kills.
KILLS_A_RUN = 6
TARGETS = 8


class Storm:
    def __init__(self, box, rng):
        self.box = box
        self.rng = rng
        self.spool = box.dir / 'spool'
        self.server = box.server()
        self.targets = sleepers(box, TARGETS)
        self.runs = []
        self.kills = 0
        self.outages = 0
        self.away = False

    def start(self):
        profd = self.box.profd(self.targets, '--chunk-seconds', '1', '--dsn',
                               self.server.dsn, '--spool', self.spool,
                               env=self.server.env)
        self.runs.append(profd)
        return profd

    def progress(self):
        """Returns a value that changes when a chunk arrives or is written to
        the spool."""
        size = 0
        with contextlib.suppress(FileNotFoundError):
            size = (self.server.dir / 'requests.jsonl').stat().st_size
        return size, spooled_ids(self.spool)

    def toggle(self):
        self.away = not self.away
        self.outages += self.away
        self.server.tell(do='down' if self.away else 'up')

    def turn(self, profd):
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
        test_kill.kill_child(profd, 'ship')
        self.kills += 1

    def drain(self):
        if self.away:
            self.toggle()
        profd = self.start()
        profd.wait_chunks()
        wait_for(lambda: not spooled_ids(self.spool), 'nothing waits')
        profd.interrupt()


def run(storm):
    while storm.kills < KILLS:
        profd = storm.start()
        for _ in range(min(KILLS_A_RUN, KILLS - storm.kills)):
            storm.turn(profd)
        profd.interrupt()
    storm.drain()
    a = Account(storm.runs, [storm.server], storm.spool, sure=False)
    check(a.taken == a.made and not a.discarded, f'{vars(a)}')
    check(a.again <= storm.kills + storm.outages,
          f'{a.again} came again, of {storm.kills} kills')
    if KILLS > 100:
        print(f'{{"kills of ship": {storm.kills}, "outages": {storm.outages}, '
              f'"chunks": {len(a.made)}, "came again": {a.again}}}')


def test_ship(box):
    try:
        run(Storm(box, random.Random(SEED)))
    except Failure as e:
        raise Failure(f'{e} (SEED={SEED})') from e


if __name__ == '__main__':
    harness.main(globals())
