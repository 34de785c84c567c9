#!/usr/bin/python3
"""1,000 new threads a second: the target loses none, capture frees all
resources of each, and every tick of each is accounted for.
"""

import os
import signal
import time

import harness
import life
from account import check_sums
from harness import check, wait_for

SECONDS = 2
RATE = 1000

# The table of threads may have grown by about 80 kB. A leak grows with every
# thread.
GROWTH_KB_MAX = 256


def descriptors(pid):
    return len(os.listdir(f'/proc/{pid}/fd'))


def memory_kb(pid):
    return int(harness.proc_status(pid, 'RssAnon').split()[0])


def test_a_storm(box):
    # A second target keeps capture running after the storm.
    other = box.target('shares')
    for rate in life.RATES:
        target = life.start(box, 'life_storm', RATE, SECONDS)
        profd = box.profd([other, target], '--rate', rate).wait_attached()
        capture, = profd.helpers()['capture']
        before = descriptors(capture), memory_kb(capture)
        life.begin(target)
        target.wait(harness.PATIENCE_S + 4 * SECONDS)
        life.transcript(target)
        # The main thread and all others have two descriptors each, and the
        # process has its own.
        wait_for(lambda: descriptors(capture) < before[0],
                 f'descriptors: {before[0]} before the storm, now '
                 f'{descriptors(capture)}')
        grown = memory_kb(capture) - before[1]
        print(f'  {rate} Hz: {grown} kB more, {profd.helpers()["capture"]}')
        check(grown < GROWTH_KB_MAX, f'capture has grown by {grown} kB')
        check(profd.helpers()['capture'] == [capture], 'capture was replaced')
        profd.interrupt()
        life.check_quiet(profd)
        # The kernel attaches each thread: a stop of the parent, and one of the
        # child.
        stops = [t['event_stops'] for t in profd.stats['targets']
                 if t['pid'] == target.pid]
        check(stops[0] > RATE * SECONDS, f'{stops} stops of new threads')
        check_sums(profd.stats, arrived='written')


def is_stopped(pid):
    """A dying thread is not stopped, and one that is gone has no state. A stopped tracee runs for a
    moment when the kernel tells it that the state of the process has changed."""
    return {harness.state(t) for t in harness.threads(pid)} <= set('tTZX') | {''}


def test_stopped_in_a_storm(box):
    """Threads that are being born are stopped, too."""
    target = life.start(box, 'life_storm', 3 * RATE, 2)
    profd = box.profd([target], '--rate', '1000').wait_attached()
    life.begin(target)
    for _ in range(60):
        target.signal(signal.SIGSTOP)
        wait_for(lambda: os.waitid(os.P_PID, target.pid, os.WSTOPPED |
                                   os.WNOHANG), 'its parent to see it stopped')
        wait_for(lambda: is_stopped(target.pid), 'all its threads to be stopped')
        target.signal(signal.SIGCONT)
        time.sleep(0.005)
        if not target.running():
            break
    target.wait(4 * harness.PATIENCE_S)
    life.transcript(target)
    life.check_profd(profd)


if __name__ == '__main__':
    harness.main(globals())
