#!/usr/bin/python3
"""New threads from their first instruction on. After the call that created a thread, the
new thread has the registers of the creator, but its stack must end there, at its root.
"""

import subprocess

import harness
from harness import BUILD, check

THREADS = 3
STEPS = 40


def births(box, name):
    """Returns the stacks of each thread: [(end, names of their frames)]."""
    target = box.target(name)
    done = subprocess.run([BUILD / 'oracle/births', str(target.pid),
                           str(THREADS), str(STEPS)],
                          capture_output=True, text=True)
    check(done.returncode == 0, done.stderr)
    lines = [line.split() for line in done.stdout.splitlines()]
    check(len(lines) == THREADS * STEPS, f'{len(lines)} lines')
    stacks = [(end, [f.rsplit(':', 1)[0] for f in frames])
              for end, *frames in lines]
    return [stacks[i:i + STEPS] for i in range(0, len(stacks), STEPS)]


def test_with_call_frame_information(box):
    for stacks in births(box, 'short_threads'):
        # The steps in glibc's clone3 or clone, up to the call of the thread's
        # function, which is on each later stack.
        n = [len(names) for _, names in stacks].index(2)
        check(3 <= n <= 12, stacks)
        for i, (end, names) in enumerate(stacks):
            check(end == 'root' and (len(names) == 1) == (i < n) and
                  names[-1] == stacks[0][1][-1], stacks)


def test_without(box):
    for stacks in births(box, 'short_threads_musl'):
        # test; jnz; xor; pop; call
        check(stacks[:5] == [stacks[0]] * 5 and stacks[0][0] == 'root' and
              len(stacks[0][1]) == 1, stacks)


if __name__ == '__main__':
    harness.main(globals())
