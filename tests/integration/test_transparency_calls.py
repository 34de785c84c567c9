#!/usr/bin/env python3
"""No system call of a target has another result than without the profiler.

cap_waits has a thread for each kind of call that waits, all the time and for
moments only. So calls are also interrupted while a thread goes to sleep or
wakes up.
"""

import subprocess

import harness
from harness import check

harness.filters_kill()

# How many times each kind of call must have returned with the profiler.
LEAST = 60

# As a part of LEAST, the calls without the profiler: before it, they show that the target is right,
# and after it, that it goes on.
FEW = 1 / 8

# The length of a wait, or the waker's pause. The shortest is one tick of the
# kernel, for calls that count ticks.
WAIT_US = '100'


def lines_of(target):
    """Returns the complete lines that it has written."""
    text = target.stdout
    return text[:text.rfind('\n') + 1].splitlines()


def ask(target, line, n=1):
    """Returns its next n lines."""
    before = len(lines_of(target))
    target.process.stdin.write(line.encode() + b'\n')
    target.process.stdin.flush()
    harness.wait_for(lambda: len(lines_of(target)) >= before + n,
                     f'the answer to {line}')
    return lines_of(target)[before:]


def number(target, word):
    return int(ask(target, word)[0].split()[1])


def check_calls(target, n):
    for line in ask(target, 'names', n):
        name, eintr, wrong, right, *text = line.split()
        check(eintr == '0', f'{name} failed with EINTR {eintr} times of '
                            f'{right}')
        check(wrong == '0', f'{name} came out wrong {wrong} times: {text}')


def kinds(program):
    """Returns the names of the calls that it makes."""
    return subprocess.run([harness.BUILD / 'targets' / program, '--list'],
                          capture_output=True, text=True,
                          check=True).stdout.split()


def watch_calls(box, rate, target, least, check_calls, more=()):
    """Makes each kind of call this many times with the profiler, and a few times
    before and after it, and checks the results; returns the statistics."""
    def wait(n):
        goal = number(target, 'least') + n
        harness.wait_for(lambda: number(target, 'least') >= goal,
                         'every kind of call a number of times')
    wait(FEW * least)
    check_calls(target)
    profd = box.profd([target], '--rate', rate, *more).wait_attached()
    wait(least)
    check_calls(target)
    profd.interrupt()
    wait(FEW * least)
    check_calls(target)
    check(target.running(), 'the target has ended')
    return profd.stats


def watch(box, rate, *calls, more=()):
    n = len(calls) or len(kinds('cap_waits')) - 2
    target = box.target('cap_waits', WAIT_US, *calls, stdin=subprocess.PIPE)
    return watch_calls(box, rate, target, LEAST, lambda t: check_calls(t, n), more)


def test_all_kinds_at_1000_hz(box):
    stats = watch(box, '1000')
    # Fewer results would prove nothing.
    check(stats['rewritten'] > 20, f'few calls were hit: {stats}')


def test_all_kinds_at_101_hz(box):
    stats = watch(box, '101')
    check(stats['rewritten'] > 0, f'few calls were hit: {stats}')


def test_waiting_for_children_at_1000_hz(box):
    watch(box, '1000', 'wait4')
    watch(box, '1000', 'waitid')


if __name__ == '__main__':
    harness.main(globals())
