#!/usr/bin/env python3
"""No call of a target ends otherwise than without us.

cap_waits has a thread for each kind of call that waits, for moments only and
all the time: what is interrupted while it goes to sleep or wakes up is found.
"""

import subprocess

import harness
from harness import check

# Each kind of call has to have come out so often, with us and without.
LEAST = 200

# A wait of this length, or the waker's pause; the shortest is a tick of the
# kernel's where a call counts these.
WAIT_US = '100'


def ask(target, line, n=1):
    """Its next n lines."""
    before = len(target.stdout.splitlines())
    target.process.stdin.write(line.encode() + b'\n')
    target.process.stdin.flush()

    def answered():
        lines = target.stdout.splitlines()[before:]
        return lines if len(lines) >= n and \
            target.stdout.endswith('\n') else None
    return harness.wait_for(answered, f'the answer to {line}')


def number(target, word):
    return int(ask(target, word)[0].split()[1])


def check_calls(target, n):
    for line in ask(target, 'names', n):
        name, eintr, wrong, right, *text = line.split()
        check(eintr == '0', f'{name} failed with EINTR {eintr} times of '
                            f'{right}')
        check(wrong == '0', f'{name} came out wrong {wrong} times: {text}')


def watch(box, rate, *calls):
    listed = subprocess.run([harness.BUILD / 'targets/cap_waits', '--list'],
                            capture_output=True, text=True, check=True)
    n = len(calls) or len(listed.stdout.split()) - 2
    target = box.target('cap_waits', WAIT_US, *calls,
                        stdin=subprocess.PIPE)
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


def test_all_kinds_at_1000_hz(box):
    stats = watch(box, '1000')
    # Else it was luck.
    check(stats['rewritten'] > 100, f'few calls were hit: {stats}')


def test_all_kinds_at_101_hz(box):
    stats = watch(box, '101')
    check(stats['rewritten'] > 10, f'few calls were hit: {stats}')


def test_waiting_for_children_at_1000_hz(box):
    watch(box, '1000', 'wait4')
    watch(box, '1000', 'waitid')


if __name__ == '__main__':
    harness.main(globals())
