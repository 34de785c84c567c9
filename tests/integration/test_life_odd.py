#!/usr/bin/python3
"""Processes and threads that are made in unusual ways, and their effects on
each other, are as without the profiler.
"""

import harness
import life
import stranger

harness.filters_kill()


def test_siblings(box):
    """CLONE_PARENT: the parent, which is not profiled, sees all of them."""
    program = life.start(box, 'life_odd', 'parent', 100)
    life.begin(program)
    alone = life.transcript(program)
    for rate in life.RATES:
        program = box.start([harness.BUILD / 'targets/life_odd', 'parent', 100],
                            stdin=-1)
        pid = int(program.wait_line(r'ready (\d+)')[1])
        profd = box.profd([pid], '--rate', rate).wait_attached()
        life.begin(program)
        life.check_same(alone, life.transcript(program), rate)
        life.check_profd(profd)


def test_clone3(box):
    life.compare(box, 'life_odd', 'clone3', 200)


def test_untraced_threads(box):
    """Untraced threads are found by a scan, and sampled."""
    life.compare(box, 'life_odd', 'untraced', 8)
    program = life.start(box, 'life_odd', 'untraced', 20)
    _, profd = life.profiled(box, program, 101)
    names = {f.get('function') for c in profd.chunks
             for f in c['profile']['frames']}
    harness.check('untraced_thread' in names, f'not found: {names}')


def test_late_exec_after_vfork(box):
    life.compare(box, 'life_odd', 'vfork', 60)


def test_storms_of_spawns(box):
    life.compare(box, 'life_odd', 'spawns', 40)


def test_tracer_of_its_own(box):
    life.compare(box, 'life_odd', 'seize', 60)


def test_leaderless_exec(box):
    """The main thread has ended when another thread executes the program
    again."""
    life.compare(box, 'life_odd', 'leader', 40, stops=False)


def test_hidden(box):
    """chroot(2), PR_SET_DUMPABLE, and another user."""
    stranger.need_root()
    harness.check(life.compare(box, 'life_odd', 'hidden', 300)[0] ==
                  'user 65534', 'it has not changed its user')


def test_targets_that_read_each_other(box):
    program = life.start(box, 'life_odd', 'read', 3000)
    life.begin(program)
    alone = life.transcript(program)
    for rate in life.RATES:
        program = life.start(box, 'life_odd', 'read', 3000)
        other, = harness.children(program.pid)
        profd = box.profd([program, other], '--rate', rate).wait_attached()
        life.begin(program)
        life.check_same(alone, life.transcript(program), rate)
        life.check_profd(profd)


if __name__ == '__main__':
    harness.main(globals())
