#!/usr/bin/python3
"""Segmented stacks (gcc -fsplit-stack): if a function needs more than is left,
libgcc switches to a new segment, whose CFI leads back. A stack that switches
once is unwound to its root, like one from a signal stack to the thread's. At a
second switch it ends with the reason, and is right up to there.
"""

import subprocess

import harness
from harness import ROOT, Skip, check
from test_profctl import parse, run
from test_zoo import problems, start

NAME = 'zoo_split'
CHANGE = '__morestack'

# Programs as in test_zoo that do not need a third segment.
WHOLE = ('tail', 'noreturn', 'split', 'callback', 'exiting', 'signal_fault',
         'signal_nested', 'signal_first', 'jumped')
# This program has large frames.
CUT = ('frames',)


def build(box):
    path = box.dir / NAME
    made = subprocess.run(
        ['gcc', '-std=gnu11', '-D_GNU_SOURCE', '-O2', '-g', '-pthread',
         '-fsplit-stack', '-fuse-ld=gold', '-o', path,
         ROOT / 'tests/targets/zoo_o2.c'], capture_output=True, text=True)
    # gold knows how much stack code needs that was compiled without
    # -fsplit-stack.
    if made.returncode != 0 and 'gold' in made.stderr:
        raise Skip('no ld.gold')
    check(made.returncode == 0, made.stderr)
    return path


def test_from_one_segment_to_another(box):
    path = build(box)
    for mode in WHOLE:
        target, stacks, ends = start(box, path, mode)
        (tid, expected), = stacks.items()
        done = run('stack', '--oracle=dwfl', target.pid, status=(0, 3))
        thread = parse(done.stdout)[tid]
        found = list(problems(thread, NAME, expected, ends, 0))
        check(found == [], f'{mode}: {found}\n{done.stdout}')
        check(CHANGE in thread.names, f'{mode} has one segment:\n{done.stdout}')
        # The stacks while the program waits.
        done = run('stack', target.pid)
        found = list(problems(parse(done.stdout)[tid], NAME, expected))
        check(found == [], f'{mode}, as it waits: {found}\n{done.stdout}')
        target.end()


def test_to_a_third_one(box):
    path = build(box)
    for mode in CUT:
        target, stacks, _ = start(box, path, mode)
        (tid, expected), = stacks.items()
        for options in ((), ('--oracle=dwfl',)):
            done = run('stack', *options, target.pid, status=(0, 3))
            thread = parse(done.stdout)[tid]
            addrs = [f.addr for f in thread.frames if f.addr in expected]
            # Innermost first and without a gap: only outer frames are missing.
            # With sp and pc alone more of them are.
            check(len(addrs) > (3 if options else 0) and addrs == expected[:len(addrs)] and
                  not any(f.guessed for f in thread.frames),
                  f'{mode} {options}: not {[hex(a) for a in expected]}\n'
                  f'{done.stdout}')
        # If the kernel has placed two segments side by side, one copy has
        # both: the whole stack, or one that is cut off.
        check(thread.end == 'capped' or
              thread.end == 'root' and addrs == expected or
              thread.end in ('unreadable', 'bad_cfa') and
              thread.frames[-1].name == CHANGE, f'{mode}:\n{done.stdout}')
        target.end()


if __name__ == '__main__':
    harness.main(globals())
