#!/usr/bin/env python3
"""No call of a target comes back with less than it would without us.

cap_whole has a thread for each kind of call that moves much at once: what runs
in such a call is interrupted there.
"""

import subprocess

import harness
from harness import check
from test_transparency_calls import ask, kinds, watch_calls

# Each kind of call has to have done its work so often, with us and without.
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
    # Else it was luck.
    check(stats['continued'] > 50, f'few calls were hit: {stats}')


def test_nothing_is_cut_short_at_101_hz(box):
    stats = watch(box, '101')
    check(stats['continued'] > 5, f'few calls were hit: {stats}')


if __name__ == '__main__':
    harness.main(globals())
