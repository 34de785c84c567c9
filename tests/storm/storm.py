#!/usr/bin/python3
"""Storms: the daemon under a load that nobody has in mind, from a seed.

    storm.py [NAME [SECONDS]]

runs each storm whose name contains NAME for SECONDS or a little longer; without
SECONDS, in the short form of make check-sanitized. A storm is a module of this
directory with run(box, seconds, rng), which raises Failure or returns its
figures, a dict, and with SHORT_S, the seconds of the short form. A module without
run() is a part of other storms. SEED=N in the environment draws the same again
(what the processes do at these moments is another matter).

$BUILD should hold sanitized executables: a fault that the broker survives, or
that a child dies of and is replaced, then leaves a line that fails the storm.

Runs alone: its waves of processes take the processors from other tests.
"""

import functools
import importlib
import os
import pathlib
import random
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / 'integration'))

import harness

MODULES = {path.stem: importlib.import_module(path.stem)
           for path in sorted(HERE.glob('*.py')) if path.stem != 'storm'}
STORMS = {name: module for name, module in MODULES.items()
          if hasattr(module, 'run')}


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


def main(pattern='', seconds=None):
    sys.argv[1:] = []
    tests = {}
    for name, storm in STORMS.items():
        if pattern in name:
            tests[f'test_{name}'] = functools.partial(
                run, name, int(seconds or storm.SHORT_S))
    harness.main(tests)


if __name__ == '__main__':
    main(*sys.argv[1:])
