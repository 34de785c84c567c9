#!/usr/bin/python3
"""10,000 handled signals a second, of all kinds at once: under profiling none
is lost, repeated or out of order, and no call ends with EINTR that would not
without the profiler.
"""

import harness
import life

RATE = N = 10000


def test_a_storm(box):
    life.compare(box, 'life_signal_storm', RATE, N)


def test_as_fast_as_they_are_handled(box):
    """Signals that are sent while a handler runs, or while the process is
    stopped, wait."""
    life.compare(box, 'life_signal_storm', 0, N)


if __name__ == '__main__':
    harness.main(globals())
