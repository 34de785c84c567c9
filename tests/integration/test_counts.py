#!/usr/bin/python3
"""The shares of functions by number of samples equal those by time.

Sentry's aggregated flame graph weights stacks by their number of samples, the
flame chart by time. Both must agree for a running thread. With --mode cpu each
sample with a stack is of a thread that ran.

Runs alone: it measures shares of time.
"""

import collections
import json
import os
import shutil

import chunk_rules
import harness
from harness import Skip

# A higher rate than the default gives more samples in less time.
RATE_HZ = 499
WORK_S = 2
POINTS = 2
# Two seconds have 20 rounds of the program, the last of which is incomplete.
KNOWN_POINTS = 8


def shares(chunks):
    """Returns {(function, is it the leaf): (percent of samples, percent of
    time)}, and the number of samples. Counts as the server does: the last
    sample of a thread in a chunk only ends the one before."""
    counts, seconds = collections.Counter(), collections.Counter()
    for chunk in chunks:
        for bar in chunk_rules.bars(chunk):
            names = [f.get('function') or f.get('package') for f in bar.frames]
            functions = {(n, False) for n in names} | {(names[0], True), 'all'}
            counts.update(functions)
            for f in functions:
                seconds[f] += bar.seconds
    return {f: (100 * counts[f] / counts['all'],
                100 * seconds[f] / seconds['all'])
            for f in counts}, counts['all']


def check_shares(box, target, known=()):
    """known: the (function, percent of time) that the program is built to
    have."""
    def attempt():
        run = box.profile([target], '--mode', 'cpu', '--rate', RATE_HZ,
                          work=WORK_S)
        found, n = shares(run.chunks)
        print(f'{n} samples, {len(found)} functions')
        wrong = [f for f, (count, time) in found.items()
                 if abs(count - time) > POINTS]
        wrong += [(name, False) for name, percent in known
                  if abs(found[name, False][0] - percent) > KNOWN_POINTS]
        text = [f'{f}: {found[f][0]:.1f} % of samples, {found[f][1]:.1f} % of '
                'time' for f in wrong]
        return text + [f'{n} samples'] * (n < RATE_HZ * WORK_S / 2)
    harness.in_turns(attempt, 3)


# Runs the program at a higher priority than others, if that is permitted: the
# number of samples of a thread that loses its processor at each tick is right
# in any case. Not used for programs with more busy threads than processors,
# which would delay the daemon.
FIRST = ['setsid', 'sh', '-c',
         'echo -20 >/proc/self/autogroup; exec nice -n -20 "$@"', 'sh']


def urgent(box, name, *args):
    target = box.start([*FIRST, harness.BUILD / 'targets' / name, *args])
    target.wait_line('ready.*')
    return target


# The shares of each kind of tests/targets/counts.c.
KNOWN = (('in_kernel', 70), ('in_loop', 30))


def test_kernel(box):
    check_shares(box, urgent(box, 'counts', 'kernel'), KNOWN)


def test_periodic(box):
    check_shares(box, urgent(box, 'counts', 'periodic'))


def test_short_threads(box):
    check_shares(box, box.target('counts', 'short'))


def test_busy_threads(box):
    check_shares(box, box.target('counts', 'busy'), KNOWN)


def test_locks(box):
    check_shares(box, urgent(box, 'counts', 'locks'))


def test_waits(box):
    check_shares(box, box.target('counts', 'waits'))


def test_recursion(box):
    check_shares(box, urgent(box, 'counts', 'recursion'), KNOWN)


def test_cplusplus(box):
    check_shares(box, box.target('threads'))


def need(name):
    if shutil.which(name) is None:
        raise Skip(f'{name} is not here')


def endless(box, command):
    """A program that reads endlessly and discards its output."""
    target = box.start([*FIRST, 'sh', '-c', f'exec {command} >/dev/null'])
    harness.wait_work(target.pid, 0.1)
    return target


def test_rust(box):
    need('hexyl')
    check_shares(box, endless(box, 'hexyl /dev/urandom'))


def test_go(box):
    need('gron')
    fifo = box.make_dir('lines') / 'fifo'
    os.mkfifo(fifo)
    line = json.dumps({'name': 'a', 'list': [*range(10), {'x': [1, 2, 3]}]})
    box.start(['sh', '-c', f"exec yes '{line}' >{fifo}"])
    check_shares(box, endless(box, f'gron -s {fifo}'))


if __name__ == '__main__':
    harness.main(globals())
