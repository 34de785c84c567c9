#!/usr/bin/python3
"""No system call of a target whose reader closes, or whose file is full, has another result than
without the profiler."""

import subprocess

import harness
from test_transparency_calls import WAIT_US, check_calls, kinds, number

harness.filters_kill()


def test_ends_at_1000_hz(box):
    """The profiler ends at 1000 Hz. Before a fix, a call failed at one of 20
    ends."""
    names = len(kinds('cap_waits')) - 2
    target = box.target('cap_waits', WAIT_US, stdin=subprocess.PIPE)
    for _ in range(20):
        profd = box.profd([target], '--rate', '1000').wait_attached()
        goal = number(target, 'least') + 1
        harness.wait_for(lambda: number(target, 'least') >= goal,
                         'every kind of call once more')
        profd.interrupt()
        check_calls(target, names)


if __name__ == '__main__':
    harness.main(globals())
