#!/usr/bin/python3
"""Programs that run a copy of their text in other memory, at its own place
(tests/targets/moved_text.c): names, stacks and images are those of the file.
"""

import signal

import chunk_rules
import harness
from harness import check
from layout import Layout

CHAIN = ['leaf', 'one', 'two', 'three', 'main']
WORK_S = 1.0
# Processor time within which the maps are read again (MAPS_EVERY_NS in daemon/unwind/program.h),
# and in which a tenth of the samples comes after that.
REREAD_WORK_S = 7.0

# At least so many of 100 samples have the whole chain. The others are in move() or main().
WHOLE_PERCENT = 95


def start(box, name, kind):
    """Returns the program, which works in the copy, and its layout from before."""
    target = box.target(name, kind)
    layout = Layout(target.pid)
    target.signal(signal.SIGUSR1)
    target.wait_line('moved')
    return target, layout


def stacks(chunks):
    """Returns the functions of each sample's stack, but for those before the move."""
    for chunk in chunks:
        profile = chunk['profile']
        names = [f.get('function') for f in profile['frames']]
        for s in profile['samples']:
            stack = [names[i] for i in profile['stacks'][s['stack_id']]]
            if 'sigwait' not in stack:
                yield stack


def check_whole(profd, layout):
    found = list(stacks(profd.chunks))
    whole = [s for s in found if s[:len(CHAIN)] == CHAIN]
    check(len(found) > 20 and
          len(whole) * 100 >= len(found) * WHOLE_PERCENT,
          f'{len(whole)} of {len(found)}: {found[:3]}')
    check(profd.stats['unwind']['failed'] == {}, f'{profd.stats["unwind"]}')
    for e in profd.envelopes:
        problems = chunk_rules.problems(e, layout)
        check(problems == [], f'{problems[:5]}')


def test_each_kind_of_memory(box):
    for kind in ('anon', 'shared', 'memfd', 'pieces', 'middle'):
        target, layout = start(box, 'moved_text', kind)
        check_whole(box.profile([target], work=WORK_S), layout)
        target.end()


def test_text_at_the_beginning_of_the_file(box):
    for kind in ('anon', 'memfd', 'middle'):
        target, layout = start(box, 'moved_text_first', kind)
        check_whole(box.profile([target], work=WORK_S), layout)
        target.end()


def test_text_that_moves_during_the_profile(box):
    target = box.target('moved_text', 'anon')
    layout = Layout(target.pid)
    profd = box.profd([target]).wait_attached()
    profd.wait_looks()
    target.signal(signal.SIGUSR1)
    target.wait_line('moved')
    harness.wait_work(target.pid, REREAD_WORK_S)
    check_whole(profd.interrupt(), layout)


def test_a_copy_at_another_place(box):
    """Code that was copied elsewhere belongs to no file."""
    target, _ = start(box, 'moved_text', 'jit')
    profd = box.profile([target], work=WORK_S)
    leaves = [c['profile']['frames'][c['profile']['stacks'][s['stack_id']][0]]
              for c in profd.chunks for s in c['profile']['samples']]
    own = [f for f in leaves if 'package' not in f]
    check(len(leaves) > 20 and len(own) * 100 >= len(leaves) * WHOLE_PERCENT,
          f'{len(own)} of {len(leaves)}: {leaves[:3]}')


if __name__ == '__main__':
    harness.main(globals())
