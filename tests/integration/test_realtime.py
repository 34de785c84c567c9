#!/usr/bin/python3
"""Targets with real-time threads: capture has a higher priority. Runs alone:
its targets take the processors from all other programs.
"""

import os

import harness
from harness import Skip, check, wait_for

harness.filters_kill()

PRIORITY = 30


def set_scheduler(program, policy, priority):
    try:
        os.sched_setscheduler(program.pid, policy, os.sched_param(priority))
    except PermissionError as e:
        raise Skip(f'no real-time priority: {e.strerror}') from None


def said(profd, priority):
    return f'sampling runs under SCHED_FIFO {priority}\n' in profd.stderr


def test_it_goes_above_them_and_back(box):
    busy = box.target('shares')
    profd = box.profd([busy], '--debug')
    profd.wait_attached()
    if not said(profd, 1):
        raise Skip('no SCHED_FIFO')
    set_scheduler(busy, os.SCHED_FIFO, PRIORITY)
    wait_for(lambda: said(profd, PRIORITY + 1), 'it is above')
    before = profd.stderr.count('SCHED_FIFO 1\n')
    set_scheduler(busy, os.SCHED_OTHER, 0)
    wait_for(lambda: profd.stderr.count('SCHED_FIFO 1\n') > before,
             'it is where it was')
    profd.interrupt()
    check(profd.stats['scheduler'] == 'fifo', f'{profd.stats["scheduler"]}')


def test_from_its_start(box):
    busy = box.target('shares')
    set_scheduler(busy, os.SCHED_RR, PRIORITY)
    profd = box.profd([busy], '--debug')
    profd.wait_attached()
    if not said(profd, 1):
        raise Skip('no SCHED_FIFO')
    wait_for(lambda: said(profd, PRIORITY + 1), 'it is above')
    profd.interrupt()


if __name__ == '__main__':
    harness.main(globals())
