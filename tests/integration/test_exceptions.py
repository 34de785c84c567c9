#!/usr/bin/python3
"""Exceptions, instruction by instruction: throws_* runs one round in single steps, and its
stack is unwound at each step. Before libgcc installs the context of the handler, the stack
must be that of the throwing function; afterwards that of the handling one. In between, some
saved registers are already those of the handler, and the stack ends in libgcc's function. At
every other step the stack reaches its root.
"""

import collections
import itertools
import subprocess

import harness
from harness import BUILD, check

# The steps of one round of tests/targets/throws.h: the innermost of its
# functions, and the callers of each.
TURN = ('turn main catcher cleaner thrower cleaner catcher main jumper forced '
        'forcer forced jumper main').split()
BELOW = {'turn': 'main', 'catcher': 'main', 'cleaner': 'catcher',
         'thrower': 'cleaner', 'jumper': 'main', 'forced': 'jumper',
         'forcer': 'forced'}
# The callers of main, which have names if libc's debug file is installed.
ENDED = '__libc_start_main', '_start'

# The functions that install a context, and how often.
INSTALLS = {'_Unwind_RaiseException': 1, '_Unwind_Resume': 1,
            '_Unwind_ForcedUnwind': 1}
# Installing takes 384 instructions. At 43 of them all stacks must be right, at
# the others, which are in called functions, one in eight.
INSTALLING_MAX = 100


class Step:
    def __init__(self, line):
        self.end, *frames = line.split()
        frames = [f.rsplit(':', 1) for f in frames]
        # A cold part belongs to its function.
        self.names = [n.removesuffix('.cold') for n, _ in frames]
        self.addrs = [int(a, 16) for _, a in frames]
        self.text = line

    def own(self):
        """Returns the program's functions on the stack."""
        return tuple(n for n in self.names if n in BELOW or n == 'main')


def steps(box, name):
    target = box.target(name)
    done = subprocess.run([BUILD / 'oracle/steps', str(target.pid), 'turn'],
                          capture_output=True, text=True)
    check(done.returncode == 0, done.stderr)
    return [Step(line) for line in done.stdout.splitlines()]


def chains(turn):
    """Returns the stacks of a round. A function that was left is not on later
    ones."""
    for name in turn:
        chain = [name]
        while chain[-1] != 'main':
            chain.append(BELOW[chain[-1]])
        yield tuple(chain)


def unknown(found):
    """Returns the installing function, and the number of consecutive steps at
    which its caller was unknown, for each such series."""
    for step, run in itertools.groupby(
            found, lambda s: s.end == 'no_cfi' and s.names[-1]):
        if step:
            yield step, len(list(run))


def look(box, name):
    found = steps(box, name)
    runs = list(unknown(found))
    counts = collections.Counter(who for who, _ in runs)
    check(counts == INSTALLS, f'{name}: {runs}')
    check(all(n < INSTALLING_MAX for _, n in runs), f'{name}: {runs}')
    known = [s for s in found if s.end != 'no_cfi']
    for step in known:
        check(step.end == 'root' and step.names[-4] == 'main' and
              tuple(step.names[-2:]) == ENDED, step.text)
    told = [chain for chain, _ in itertools.groupby(known, Step.own)]
    check(told == list(chains(TURN)), f'{name}: {told}')


def test_without_frame_pointers(box):
    look(box, 'throws_o2')


def test_with_frame_pointers(box):
    look(box, 'throws_o0')


if __name__ == '__main__':
    harness.main(globals())
