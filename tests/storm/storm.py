#!/usr/bin/python3
"""Storms: the daemon under a load that nobody has in mind, from a seed.

    storm.py [NAME [SECONDS]]

runs each storm whose name contains NAME for SECONDS (60) or a little longer. A
storm is a module of this directory with run(box, seconds, rng), which raises
Failure or returns its figures, a dict. SEED=N in the environment draws the same
again (what the processes do at these moments is another matter).

$BUILD should hold sanitized executables: a fault that the broker survives, or
that a child dies of and is replaced, then leaves a line that fails the storm.

Runs alone: its waves of processes take the processors from other tests.
"""

import functools
import os
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'integration'))

import churn
import harness

STORMS = {'churn': churn}
SECONDS = 60


def run(name, seconds, box):
    seed = os.environ.get('SEED') or str(random.randrange(10**6))
    print(f'{name}: SEED={seed}, {seconds} s', flush=True)
    try:
        figures = STORMS[name].run(box, seconds,
                                   random.Random(f'{seed} {name}'))
    except harness.Failure as e:
        raise harness.Failure(f'{e} (SEED={seed})') from e
    for what, n in figures.items():
        print(f'  {what}: {n}', flush=True)


def main(pattern='', seconds=SECONDS):
    sys.argv[1:] = []
    harness.main({f'test_{name}': functools.partial(run, name, int(seconds))
                  for name in STORMS if pattern in name})


if __name__ == '__main__':
    main(*sys.argv[1:])
