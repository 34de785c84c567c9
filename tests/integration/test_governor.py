#!/usr/bin/python3
"""The CPU budget: what costs too much is sampled at a lower rate, and the time
in the profile stays right.
"""

import re
import signal

import chunk_rules
import harness
from harness import check, wait_for

LOWERED = r'% of a processor are more than the budget of 1 %: process {} is ' \
    r'sampled at (\d+) Hz'


def test_lowered(box):
    """A thousand samples a second of a program that never waits are more than
    a hundredth of a processor."""
    busy = box.target('shares')
    idle = box.target('cap_threads', stdin=-1)
    profd = box.profd([busy, idle], '--rate', '1000', '--cpu-budget', '1',
                      '--chunk-seconds', '1')
    lowered = wait_for(lambda: re.search(LOWERED.format(busy.pid),
                                         profd.stderr), 'a lower rate')
    chunks = len(profd.chunks)
    wait_for(lambda: len(profd.chunks) > chunks + 8, 'more chunks')
    profd.signal(signal.SIGINT)
    profd.finish()
    figures = {t['pid']: t for t in profd.stats['targets']}
    governor = figures[busy.pid]['governor']
    check(governor['lowest_rate_hz'] <= int(lowered[1]) < 1000 and
          governor['lowered_s'] > 0, f'{governor}')
    check(figures[idle.pid]['governor']['lowest_rate_hz'] == 1000,
          f'the idle one was lowered: {figures[idle.pid]["governor"]}')
    for f in figures.values():
        check(f['samples_expected'] == f['samples_taken'] +
              sum(f['missed'].values()), f'{f}')
    check(figures[busy.pid]['ticks'] < figures[idle.pid]['ticks'],
          'no tick was left out')
    # Every second of the run is in the chunks, whatever the rate was.
    tid = str(busy.pid)
    seconds = sum(chunk_rules.thread_seconds(c).get(tid, 0)
                  for c in profd.chunks)
    missed = sum(figures[busy.pid]['missed'].values()) / 1000
    whole = profd.stats['duration_s']
    check(abs(seconds + missed - whole) < 0.25,
          f'{seconds:.2f} s of {whole:.2f} s')


def test_no_limit(box):
    busy = box.target('shares')
    profd = box.profd([busy], '--rate', '1000', '--cpu-budget', '0',
                      '--chunk-seconds', '1')
    wait_for(lambda: len(profd.chunks) > 3, 'chunks')
    profd.interrupt()
    check(profd.stats['governor'] == {
        'cpu_budget_percent': 0, 'lowest_rate_hz': 1000, 'lowered_s': 0.0},
          f'{profd.stats["governor"]}')
    check(profd.stats['scheduler'] in ('fifo', 'nice', 'normal'),
          f'{profd.stats["scheduler"]}')


if __name__ == '__main__':
    harness.main(globals())
