#!/usr/bin/env python3
"""No call of a target comes back with less than it would without us.

cap_whole has a thread for each kind of call that moves much at once: what runs
in such a call is interrupted there.
"""

import subprocess

import harness
from harness import check
from test_transparency_calls import ask, number

# Each kind of call has to have done its work so often, with us and without.
LEAST = 40


def check_calls(target, n):
    for line in ask(target, 'names', n):
        name, short, wrong, whole = line.split()
        check(wrong == '0', f'{name}: wrong data or an error {wrong} times')
        check(short == '0', f'{name} came back with a part {short} times, '
                            f'with all {whole} times')


def watch(box, rate):
    listed = subprocess.run([harness.BUILD / 'targets/cap_whole', '--list'],
                            capture_output=True, text=True, check=True)
    n = len(listed.stdout.split())
    target = box.target('cap_whole', stdin=subprocess.PIPE)
    harness.wait_for(lambda: number(target, 'least') >= LEAST,
                     'every kind of call a number of times')
    check_calls(target, n)
    profd = box.profd([target], '--rate', rate).wait_attached()
    goal = number(target, 'least') + LEAST
    harness.wait_for(lambda: number(target, 'least') >= goal,
                     'every kind of call a number of times')
    profd.interrupt()
    check_calls(target, n)
    check(target.running(), 'the target has ended')
    return profd.stats


def test_nothing_is_cut_short_at_1000_hz(box):
    stats = watch(box, '1000')
    # Else it was luck.
    check(stats['continued'] > 50, f'few calls were hit: {stats}')


def test_nothing_is_cut_short_at_101_hz(box):
    stats = watch(box, '101')
    check(stats['continued'] > 5, f'few calls were hit: {stats}')


if __name__ == '__main__':
    harness.main(globals())
