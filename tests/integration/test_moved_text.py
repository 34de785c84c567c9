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
    """Returns the functions of each running sample's stack."""
    for chunk in chunks:
        profile = chunk['profile']
        names = [f.get('function') for f in profile['frames']]
        for s in profile['samples']:
            yield [names[i] for i in profile['stacks'][s['stack_id']]]


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
    harness.wait_work(target.pid, WORK_S)
    profd = profd.interrupt()
    found = [s for s in stacks(profd.chunks) if 'leaf' in s]
    check(len(found) > 20 and all(s[:len(CHAIN)] == CHAIN for s in found),
          f'{found[:3]}')
    check(all(chunk_rules.problems(e, layout) == [] for e in profd.envelopes),
          'images')


def test_a_copy_at_another_place(box):
    """Code that was copied elsewhere belongs to no file."""
    target, _ = start(box, 'moved_text', 'jit')
    profd = box.profile([target], work=WORK_S)
    for stack in stacks(profd.chunks):
        check('leaf' not in stack, f'{stack}')


if __name__ == '__main__':
    harness.main(globals())
