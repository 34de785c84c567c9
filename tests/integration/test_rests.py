#!/usr/bin/env python3
"""Ticks without a due target wake no process: the timer skips them."""

import os
import re
import subprocess

import harness

harness.filters_kill()

RATE = 1000
PERIOD_NS = 10**9 // RATE

IT_VALUE = re.compile(r'^it_value: \((\d+), (\d+)\)$', re.MULTILINE)


def timers(pid):
    """Returns the nanoseconds until each of its tick timers expires."""
    for fd in os.listdir(f'/proc/{pid}/fd'):
        found = IT_VALUE.search(harness.proc_text(pid, f'fdinfo/{fd}'))
        if found:
            yield int(found[1]) * 10**9 + int(found[2])


def test_a_process_that_sleeps(box):
    target = box.target('cap_threads', stdin=subprocess.PIPE)
    profd = box.profd([target], '--rate', str(RATE)).wait_attached()
    capture = profd.helpers()['capture'][0]
    harness.wait_for(
        lambda: any(ns > 2 * PERIOD_NS for ns in timers(capture)),
        'the timer leaves ticks out')


if __name__ == '__main__':
    harness.main(globals())
