#!/usr/bin/python3
"""The root broker with children under an attacker's control, which break each rule of messages
(hostile.py)."""

import harness
import hostile
from harness import check
from test_broker import run_hostile


# Faults that are reported in other words than a wrong size.
OF_RIGHT_SIZE = ('file request', 'chunk', 'lost', 'opened', 'closed', 'stats',
                 'state')

WITHOUT_DESCRIPTOR = 'chunk: no descriptor'


def test_broken_rules(box):
    """Each violation ends the child at once, and no other process."""
    target = box.napper()
    for attack in hostile.FATAL:
        child = hostile.child_of(attack)
        profd = run_hostile(box, target, child, attack,
                            lambda p: 'is replaced' in p.stderr)
        first = [line for line in profd.stderr.splitlines()
                 if 'is replaced' in line][0]
        check(f'sentry-profd-{child} ' in first and 'heartbeat' not in first,
              f'{child}: {attack}: {profd.stderr}')
        check('unknown message' not in first or
              attack.partition(':')[0] not in OF_RIGHT_SIZE or
              attack == WITHOUT_DESCRIPTOR,
              f'{child}: {attack}: {profd.stderr}')


if __name__ == '__main__':
    harness.main(globals())
