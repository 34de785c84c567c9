#!/usr/bin/python3
"""Signals under profiling arrive as without it: once, with their siginfo, at
their thread. Their effect on system calls is that of signal(7).
"""

import os
import random

import harness
import life
from harness import Failure

harness.filters_kill()

SEED = int(os.environ.get('SEED') or random.randrange(10**6))


def test_each_signal_in_every_way(box):
    """More than two thousand signals, of all 62 that can be caught, from a
    seed."""
    try:
        life.compare(box, 'life_signals', SEED, 1302)
    except Failure as e:
        raise Failure(f'{e} (SEED={SEED})') from e


def test_ends(box):
    """Calls whose reader closes, or whose file is full, in the middle of a
    transfer."""
    life.compare(box, 'life_ends', 20)


if __name__ == '__main__':
    harness.main(globals())
