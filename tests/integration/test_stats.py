#!/usr/bin/python3
"""--stats: the statistics of several targets, and their sum."""

import os
import resource

import harness
from harness import check, wait_for
from progress import Progress

PROCESSES = {'broker', 'capture', 'unwind', 'ship'}


def test_what_each_target_costs(box):
    """A busy and an idle target share all processes."""
    busy = Progress(box)
    idle = box.start(['sleep', '1000'])
    # The idle target never works.
    profd = box.profd([busy, idle]).wait_attached()
    harness.wait_work(busy.pid, 1)
    profd.wait_looks()
    profd.interrupt()
    stats = profd.stats
    of_busy, of_idle = stats['targets']
    check((of_busy['pid'], of_idle['pid']) == (busy.pid, idle.pid),
          f'{stats["targets"]}')
    cpu, memory = stats['cpu_seconds'], stats['rss_peak_bytes']
    check(set(cpu) == set(memory) == PROCESSES, f'{cpu}, {memory}')
    for name in PROCESSES:
        parts = [t['cpu_seconds'][name] for t in stats['targets']]
        check(abs(sum(parts) - cpu[name]) < 1e-5,
              f'{name}: {parts} is not {cpu[name]}')
        check(all(t['rss_peak_bytes'][name] == memory[name] > 0
                  for t in stats['targets']), f'{name}: {stats}')
    check(of_busy['cpu_seconds']['capture'] >
          2 * of_idle['cpu_seconds']['capture'] > 0 and
          min(t['cpu_seconds']['unwind'] for t in stats['targets']) > 0,
          f'{of_busy["cpu_seconds"]}, {of_idle["cpu_seconds"]}')


def used():
    """Returns the resources of the processes that were waited for, and of
    those that they waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def test_nobody_is_left_out(box):
    """The statistics contain all resources of sentry-profd's processes. A
    tenth of them here is the helper's that opens files, a fork of the broker.
    """
    targets = [box.start(['sleep', 'infinity']) for _ in range(60)]
    before = used()
    stats = box.profile(targets).stats

    def alone():
        # In the other order a process that ends in between would be missing in
        # both.
        left = harness.children(os.getpid())
        harness.reap()
        return left == sorted(t.pid for t in targets)
    wait_for(alone, 'the helper ends')
    in_stats = sum(stats['cpu_seconds'].values())
    left_out = used() - before - in_stats
    check(abs(left_out) < 0.05 * in_stats,
          f'{left_out:.4f} s are not in {stats["cpu_seconds"]}')


if __name__ == '__main__':
    harness.main(globals())
