#!/usr/bin/python3
"""Processes with more threads than capture has descriptors for, or time in a
tick. Threads that capture cannot attach to are counted, other targets do not
suffer, and the target does not notice.

Runs alone: it has thousands of threads.
"""

import pathlib

import harness
import life
import test_perf
from account import check_sums
from harness import Skip, check, wait_for

# Pids that are left to other processes.
SPARE = 6000
MOST = 12000


def total(figures, reason):
    return figures['missed'].get(reason, 0)


def watch(box, n, limits=':'):
    """Attaches to a process of n waiting threads and to another one; returns
    the statistics of both."""
    other = box.target('shares')
    target = life.start(box, 'life_many', n, 20)
    profd = box.profd([other, target], '--chunk-seconds', '1',
                      wrapper=['sh', '-c', f'{limits}; exec "$@"', 'sh'])
    capture = wait_for(lambda: profd.helpers()['capture'], 'capture')
    # When the counts do not change any more, capture has attached to all
    # threads that it can, and the others are counted.
    def settled():
        before = attached(target)
        profd.wait_chunks()
        return before > 0 and attached(target) == before
    wait_for(settled, 'it is attached to', 4 * harness.PATIENCE_S)
    check(profd.helpers()['capture'] == capture,
          f'capture was replaced: {profd.stderr}')
    life.begin(target)
    check(target.wait(4 * harness.PATIENCE_S) == 0, target.report())
    check(life.transcript(target) == [f'woken {n + 4} failed 0'], target.stdout)
    profd.interrupt()
    # Capture is so long at each tick that the other process is seen less than it runs.
    told = [l for l in profd.stderr.splitlines()
            if 'no release' not in l and 'running times are not right' not in l]
    check(all(' threads of process ' in l for l in told), f'{told}')
    check_sums(profd.stats, arrived='written')
    check(harness.tracer(other.pid) == 0, 'it is still traced')
    other.end()
    return profd.stats['targets']


def attached(target):
    return sum(harness.tracer(t) != 0 for t in harness.threads(target.pid))


def suffers(figures):
    """Returns an empty list if the other target has its ticks. On a busy
    machine half of the ticks are enough, in one of some attempts."""
    return [] if figures['samples_taken'] > 0.5 * figures['samples_expected'] \
        else [figures]


def test_tens_of_thousands(box):
    most = int(pathlib.Path('/proc/sys/kernel/pid_max').read_text())
    n = min(MOST, most - SPARE)
    if n < 10000:
        raise Skip(f'no more than {most} threads may run here')

    def turn():
        other, many = watch(box, n)
        print(f'  {n} threads: {many["samples_taken"]} samples, missed '
              f'{many["missed"]}; {many["cpu_seconds"]["capture"]:.1f} s of '
              f'processor time in {many["duration_s"]:.1f} s; the other one '
              f'{other["samples_taken"]} of {other["samples_expected"]}')
        check(many['samples_taken'] > 0, f'{many}')
        return suffers(other)
    harness.in_turns(turn, 3)


def test_tens_of_thousands_under_perf(box):
    """Nothing is attached, so the processor's clock sees the busy process as if it were alone."""
    test_perf.need_perf(box)
    other = box.target('shares')
    target = life.start(box, 'life_many', 10000, 20)
    profd = box.profd([other, target], '--chunk-seconds', '1', *test_perf.PERF).wait_attached()
    life.begin(target)
    check(life.transcript(target) == ['woken 10004 failed 0'], target.stdout)
    test_perf.check_untraced([other])
    profd.interrupt()
    check_sums(profd.stats, arrived='written')
    figures, many = profd.stats['targets']
    print(f'  {many["samples_taken"]} samples of {many["samples_expected"]}, missed '
          f'{many["missed"]}; the other one {figures["samples_taken"]} of '
          f'{figures["samples_expected"]}')
    check(many['samples_taken'] > 0 and not suffers(figures), f'{figures}')


def test_more_than_there_are_descriptors(box):
    """Threads that the kernel or capture has attached, but that are not in the
    table, are repaired like others."""
    def turn():
        other, many = watch(box, 400, 'ulimit -n 120')
        check(total(many, 'not_attached') > 100 * many['ticks'],
              f'they are not counted: {many}')
        check(total(many, 'not_attached') < 400 * many['ticks'],
              f'none was attached to: {many}')
        return suffers(other)
    harness.in_turns(turn)


if __name__ == '__main__':
    harness.main(globals())
