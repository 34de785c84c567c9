#!/usr/bin/python3
"""The running time of a profile is the CPU time that the kernel counts, also if threads run for
some microseconds only and hand work to each other (tests/targets/handoff). tests/bench/truth.py
measures more exactly, and with more programs.
"""

import bars
import harness
from harness import check, cpu_seconds

# Processor time for some hundred samples at 997 Hz.
WORK_S = 3.0
RATE_HZ = 997


def running_seconds(profd):
    return sum(following['timestamp'] - s['timestamp']
               for chunk in profd.chunks
               for samples in bars.by_thread(chunk['profile']).values()
               for s, following in zip(samples, samples[1:])
               if 'state' not in s and chunk['profile']['stacks'][s['stack_id']])


def check_told(box, *argv):
    target = box.target(*argv)
    profd = box.profd([target], '--rate', RATE_HZ).wait_attached()
    before = cpu_seconds(target.pid)
    harness.wait_for(lambda: cpu_seconds(target.pid) >= before + WORK_S, f'{WORK_S} s of work')
    profd.interrupt()
    used = cpu_seconds(target.pid) - before
    target.end()
    # The profile begins and ends some ticks before and after the two readings.
    told = running_seconds(profd) / used
    check(0.8 < told < 1.25, f'{told:.2f} of {used:.2f} s told as running')


def test_hand_over_by_a_condition_variable(box):
    check_told(box, 'handoff', 'cond', 1)


def test_hand_over_by_a_pipe(box):
    check_told(box, 'handoff', 'pipe', 1)


def test_pool_with_futures(box):
    check_told(box, 'pool')


def test_short_work_between_sleeps(box):
    check_told(box, 'naps', 8, 50, 1000, 'epoll')


if __name__ == '__main__':
    harness.main(globals())
