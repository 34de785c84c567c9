#!/usr/bin/python3
"""1,000 threads a second: the target loses none, capture gives back what it took
for each, and every tick of each is accounted for.

STORM_SECONDS in the environment sets how long (2; make soak: 30).
"""

import os

import harness
import life
from harness import check, wait_for

SECONDS = int(os.environ.get('STORM_SECONDS') or 2)
RATE = 1000

# A table of threads may have grown; what leaks grows with every thread.
GROWTH_KB_MAX = 8192


def descriptors(pid):
    return len(os.listdir(f'/proc/{pid}/fd'))


def memory_kb(pid):
    return int(harness.proc_status(pid, 'RssAnon').split()[0])


def test_a_storm(box):
    # Another target keeps capture there when the storm is over.
    other = box.target('shares')
    for rate in life.RATES:
        target = life.start(box, 'life_storm', RATE, SECONDS)
        profd = box.profd([other, target], '--rate', rate).wait_attached()
        capture, = profd.helpers()['capture']
        before = descriptors(capture), memory_kb(capture)
        life.begin(target)
        target.wait(harness.PATIENCE_S + 4 * SECONDS)
        life.transcript(target)
        # Its main thread and all others: two descriptors each, and its own.
        wait_for(lambda: descriptors(capture) < before[0],
                 f'descriptors: {before[0]} before the storm, now '
                 f'{descriptors(capture)}')
        grown = memory_kb(capture) - before[1]
        print(f'  {rate} Hz: {grown} kB more, {profd.helpers()["capture"]}')
        check(grown < GROWTH_KB_MAX, f'capture has grown by {grown} kB')
        check(profd.helpers()['capture'] == [capture], 'capture was replaced')
        profd.interrupt()
        life.check_quiet(profd)
        for figures in [profd.stats] + profd.stats['targets']:
            check(figures['samples_expected'] == figures['samples_taken'] +
                  sum(figures['missed'].values()),
                  f'expected is not taken and missed: {figures}')


if __name__ == '__main__':
    harness.main(globals())
