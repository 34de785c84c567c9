#!/usr/bin/python3
"""Signals under profiling: waiting calls, faults, and the order of signals are as without it."""

import harness
import life
from test_life_signals import SEED

harness.filters_kill()


def test_calls_that_wait(box):
    """Ignored signals end none of 66 calls; handlers end those that signal(7)
    names."""
    life.compare(box, 'life_waits', 40)


def test_faults(box):
    """Faults of eight kinds, and single steps."""
    life.compare(box, 'life_faults', 1000)


def test_order(box):
    """Blocked signals, merged ones, nested handlers, one-shot handlers, and
    signals that are received without a handler."""
    life.compare(box, 'life_order', SEED, 3000)


if __name__ == '__main__':
    harness.main(globals())
