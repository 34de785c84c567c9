#!/usr/bin/python3
"""Programs that execute themselves all the time, from any thread, while other
threads begin and end: each exec completes, and no target is excluded.
"""

import os
import random
import signal
import time

import harness
import life
from account import check_sums
from harness import check

harness.filters_kill()

# The number of capture's wakes. At most of them an event has happened, at some
# it is time for a tick.
LOOKS = 1000

SEED = int(os.environ.get('SEED') or random.randrange(10**6))


def test_execs_under_profiling(box):
    life.compare(box, 'life_execs', 60, stops=False)


def test_attached_in_the_middle(box):
    """Attaches at random moments of an exec, repeatedly."""
    rng = random.Random(SEED)
    target = life.start(box, 'life_execs', 1000000)
    life.begin(target)
    for n in range(12):
        profd = box.profd([target], '--rate', '1000')
        profd.wait_attached()
        time.sleep(rng.uniform(0.05, 0.5))
        profd.wait_looks(LOOKS)
        check(target.running(), f'the target has ended: {target.report()}')
        profd.interrupt()
        life.check_quiet(profd)
        check_sums(profd.stats, arrived='written')
        check(profd.stats['samples_taken'] > 0, f'no samples: {profd.stats}')
    profd = box.profd([target], '--rate', '1000').wait_attached()
    profd.wait_looks(LOOKS)
    target.signal(signal.SIGKILL)
    target.wait()
    life.check_profd(profd)


if __name__ == '__main__':
    harness.main(globals())
