#!/usr/bin/python3
"""Exceptions, instruction by instruction: throws_* goes through one turn by single
steps, and its stack is told at each of them.

While libgcc installs the handler's context its own saved registers are the
handler's: from the call that does so on the stack is the handler's function's,
at the address where the thread is about to be. No step ends elsewhere than in
the root.
"""

import itertools
import subprocess

import harness
from harness import BUILD, check

# What a turn of tests/targets/throws.h does, by the innermost of its functions,
# and who has called each.
TURN = ('turn main catcher cleaner thrower cleaner catcher main jumper forced '
        'forcer forced jumper main').split()
BELOW = {'turn': 'main', 'catcher': 'main', 'cleaner': 'catcher',
         'thrower': 'cleaner', 'jumper': 'main', 'forced': 'jumper',
         'forcer': 'forced'}
# And what has called main, which has a name where libc's debug file is.
ENDED = '__libc_start_main', '_start'

# Whose last instructions these are, and how often.
INSTALLS = {'_Unwind_RaiseException': 1, '_Unwind_Resume': 1,
            '_Unwind_ForcedUnwind': 1}
# What follows the call that installs has 24 instructions, one in eight of which
# it has is told, too.
AHEAD_MIN = 40


class Step:
    def __init__(self, line):
        self.end, *frames = line.split()
        frames = [f.rsplit(':', 1) for f in frames]
        # What gcc has put aside is of the function.
        self.names = [n.removesuffix('.cold') for n, _ in frames]
        self.addrs = [int(a, 16) for _, a in frames]
        self.text = line

    def own(self):
        """The program's functions on it."""
        return tuple(n for n in self.names if n in BELOW or n == 'main')


def steps(box, name):
    target = box.target(name)
    done = subprocess.run([BUILD / 'oracle/steps', str(target.pid), 'turn'],
                          capture_output=True, text=True)
    check(done.returncode == 0, done.stderr)
    return [Step(line) for line in done.stdout.splitlines()]


def chains(turn):
    """The stacks of a turn: who is left has not been on it any more."""
    for name in turn:
        chain = [name]
        while chain[-1] != 'main':
            chain.append(BELOW[chain[-1]])
        yield tuple(chain)


def landings(found):
    """(who installed, steps at which the stack was the handler's already)."""
    for i in range(1, len(found)):
        before, here = found[i - 1], found[i]
        if before.names[0] in INSTALLS and here.names[0] in BELOW:
            # A place that no call has led to: plus one.
            ahead = itertools.takewhile(
                lambda s: here.addrs[0] + 1 in s.addrs, found[i - 1::-1])
            yield before.names[0], len(list(ahead))


def look(box, name):
    found = steps(box, name)
    for step in found:
        check(step.end == 'root' and step.names[-4] == 'main' and
              tuple(step.names[-2:]) == ENDED, step.text)
    told = [chain for chain, _ in itertools.groupby(found, Step.own)]
    check(told == list(chains(TURN)), f'{name}: {told}')
    counts = {}
    for who, ahead in landings(found):
        counts[who] = counts.get(who, 0) + 1
        check(ahead >= AHEAD_MIN, f'{name}: {who} for {ahead} steps')
    check(counts == INSTALLS, f'{name}: {counts}')


def test_without_frame_pointers(box):
    look(box, 'throws_o2')


def test_with_frame_pointers(box):
    look(box, 'throws_o0')


if __name__ == '__main__':
    harness.main(globals())
