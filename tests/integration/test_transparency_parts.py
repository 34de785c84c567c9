#!/usr/bin/env python3
"""Calls on pipes and stream sockets return no less than without the profiler, and
calls that may be short lose no bytes and do not fail. cap_whole has a thread for each
kind of call that transfers much at once, so threads are interrupted in such calls.
"""

import subprocess

import harness
from harness import check
from test_transparency_calls import ask, kinds, watch_calls

harness.filters_kill()

# How many times each kind of call must be complete with the profiler.
LEAST = 40


def check_calls(target, n):
    for line in ask(target, 'names', n):
        name, short, wrong, whole = line.split()
        check(wrong == '0', f'{name}: wrong data or an error {wrong} times')
        check(short == '0', f'{name} came back with a part {short} times, '
                            f'with all {whole} times')


def watch(box, rate):
    n = len(kinds('cap_whole'))
    target = box.target('cap_whole', stdin=subprocess.PIPE)
    return watch_calls(box, rate, target, LEAST, lambda t: check_calls(t, n))


def test_nothing_is_cut_short_at_1000_hz(box):
    stats = watch(box, '1000')
    # Fewer results would prove nothing.
    check(stats['continued'] > 50, f'few calls were hit: {stats}')


def test_nothing_is_cut_short_at_101_hz(box):
    stats = watch(box, '101')
    check(stats['continued'] > 5, f'few calls were hit: {stats}')


if __name__ == '__main__':
    harness.main(globals())
