#!/usr/bin/env python3
"""100 processes, of which 10 match, and some are restarted all the time: each
is found, and nothing of ended ones is kept.

Runs alone: it compares the resources that a daemon uses before and after.
"""

import random
import signal
import subprocess

import harness
from harness import BUILD, check, cpu_seconds, descriptors, proc_status, wait_for
from service import Service, fork

PROCESSES, MATCHING = 100, 10
RESTARTS, A_TIME = 40, 4


def memory_kib(pid):
    """Returns its private memory."""
    return int(proc_status(pid, 'RssAnon').split()[0])


class Fleet:
    """The processes. A program ends them if the test dies."""

    def __init__(self, box, service):
        self.service = service
        self.box = box
        self.strangers = box.start([BUILD / 'targets/prefork'],
                                   stdin=subprocess.PIPE)
        for _ in range(PROCESSES - MATCHING - 1):
            fork(self.strangers)
        self.ours = [self.new() for _ in range(MATCHING)]

    def new(self):
        return subprocess.Popen(
            [self.service.exe['web']], stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            preexec_fn=lambda: harness.libc.prctl(harness.PR_SET_PDEATHSIG,
                                                  signal.SIGKILL, 0, 0, 0))

    def restart(self, k):
        self.end(self.ours[k])
        self.ours[k] = self.new()

    @staticmethod
    def end(process):
        process.kill()
        process.wait()
        process.stdin.close()

    def end_all(self):
        for process in self.ours:
            self.end(process)

    def wait_profiled(self):
        self.service.wait_profiled(*(p.pid for p in self.ours))


def figures(service):
    """Returns the descriptors and the memory of the broker and of capture."""
    pids = [service.profd.pid, *service.profd.helpers()['capture']]
    return [(len(descriptors(pid)), memory_kib(pid)) for pid in pids]


def test_none_is_missed_and_nothing_is_left(box):
    service = Service(box, {'web': {}})
    fleet = Fleet(box, service)
    fleet.wait_profiled()
    # Tables and the like have reached their size by then.
    for k in range(MATCHING):
        fleet.restart(k)
    fleet.wait_profiled()
    before = figures(service)
    cpu = cpu_seconds(service.profd.pid)
    for _ in range(RESTARTS // A_TIME):
        for k in random.sample(range(MATCHING), A_TIME):
            fleet.restart(k)
        # No process is missed, however soon the next one follows.
        fleet.wait_profiled()
    used = cpu_seconds(service.profd.pid) - cpu
    wait_for(lambda: all(now[0] <= was[0] + 2 for now, was in
                         zip(figures(service), before)),
             f'as many descriptors as before: {before}')
    after = figures(service)
    for (_, kib), (_, was) in zip(after, before):
        check(kib <= was + 512 + RESTARTS // 4,
              f'memory grows: {before}, {after} (descriptors, KiB)')
    print(f'{RESTARTS} restarts: the broker used {used:.2f} s; descriptors '
          f'and KiB of it and of capture: {before}, then {after}', flush=True)
    fleet.end_all()
    service.stop()


if __name__ == '__main__':
    harness.main(globals())
