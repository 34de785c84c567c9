#!/usr/bin/python3
"""Crashes beside other work: many threads, calls that wait, other targets, other signals,
and crashes as soon as a process is attached."""

import subprocess

import crashes
import harness
from account import check_sums
from crashes import check_end, crash, start
from harness import check, in_turns
from progress import Progress
from service import tell
from test_crash import LOOKS, go, profile_crash
from test_transparency_calls import check_calls, kinds

harness.filters_kill()


def test_a_thousand_threads(box):
    profile_crash(box, '--rate', '997', threads=1000, way='helper', who='other')


def test_no_call_is_disturbed(box):
    """The reporter waits until each thread of the program is in its call again,
    so that a call that failed is noticed."""
    for beside in ('none', 'births'):
        profile_crash(box, '--rate', '997', calm=1, beside=beside, who='other', way='helper')


def test_ignored_signals(box):
    """An ignored signal wakes threads of a process whose leader is traced. So
    capture detaches from the leader first: else such calls fail in each turn."""
    for beside in ('children', 'vfork', 'winch'):
        def turn():
            program = start(box, calm=1, beside=beside, who='other', way='helper')
            profd = box.profd([program]).wait_attached()
            profd.wait_looks(LOOKS)
            crash(program)
            profd.finish()
            return crashes.interrupted(program)
        in_turns(turn)


def test_other_signals(box):
    """A program for each signal, which crash one after the other, by an
    instruction, raise(3), tgkill(2), and a signal of another process."""
    programs = [start(box, signal=name, threads=5, by=by, way=way, who=who)
                for name, by, way, who in zip(
                    crashes.SIGNALS * 2,
                    ('raise', 'fault', 'thread', 'fault', 'fault', 'outside', 'fault',
                     'outside', 'thread', 'fault', 'raise', 'raise', 'fault', 'thread'),
                    crashes.WAYS * 5, ('other', 'leader') * 7)]
    other = box.target('cap_waits', '100', stdin=subprocess.PIPE)
    profd = box.profd([*programs, other], '--rate', '997').wait_attached()
    profd.wait_looks(LOOKS)
    for program in programs:
        crash(program)
    profd.interrupt()
    check_calls(other, len(kinds('cap_waits')) - 2)
    # Of lines that are alike the log has ten a minute.
    for name in crashes.SIGNALS:
        check(f' has crashed by SIG{name}, ' in profd.stderr, profd.stderr)
    check_sums(profd.stats, arrived='written')


def test_two_targets_at_once(box):
    for _ in range(3):
        programs = [start(box, way=way) for way in ('helper', 'fork')]
        other = Progress(box)
        profd = box.profd([*programs, other], '--rate', '997').wait_attached()
        profd.wait_looks(LOOKS)
        for program in programs:
            go(program)
        for program in programs:
            check_end(program)
        other.check_going_on()
        profd.interrupt()
        check_sums(profd.stats, arrived='written')


# Less than the time for which capture holds a process whose threads do not all stop.
STALL_US = 50_000


def test_other_targets_do_not_stand_still(box):
    """Their signals, new threads and ends are handled while a process is held that
    has a parent in vfork(2), which does not stop."""
    def turn():
        program = box.target('cap_threads', stdin=subprocess.PIPE)
        for line in ('handle 11', 'vforks'):
            tell(program, line)
        program.wait_line(r'ok \d+\nok \d+')
        other = box.target('stalls', stdin=subprocess.PIPE)
        profd = box.profd([program, other]).wait_attached()
        profd.wait_looks(LOOKS)
        tell(program, 'raise 11')
        program.wait_line('traced 0')
        other.process.stdin.close()
        check(other.wait() == 0, other.report())
        tell(program, 'join')
        program.process.stdin.close()
        check(program.wait() == 0, program.report())
        profd.interrupt()
        longest = int(other.stdout.split()[-1])
        return [] if longest < STALL_US else [f'stood still for {longest} us']
    in_turns(turn)


def test_at_once(box):
    """The crash comes as soon as the thread is traced, while others are still
    attached to."""
    for _ in range(3):
        program = start(box, go='traced', who='other', threads=200)
        profd = box.profd([program], '--rate', '997')
        check_end(program)
        profd.finish()
        check_sums(profd.stats, arrived='written')


def test_ordinary_work(box):
    """After two crashes that it has survived the signal no longer counts: one
    line says so, and the third handler runs traced."""
    program = start(box, survive=3, end='on', threads=5)
    profd = box.profd([program]).wait_attached()
    line = f'process {program.pid} (crash) has survived SIGSEGV again and again: '
    for n in (1, 2):
        profd.wait_looks(LOOKS)
        go(program)
        program.wait_line(f'survived {n}')
        crashes.check_reports(program.stdout, program.options, n)
        profd.wait_attached()
        check((profd.stderr.count(line) == 0) == (n == 1), profd.stderr)
    go(program)
    program.wait_line('survived 3')
    third = crashes.reports(program.stdout)[2]
    check(third['attached'] == 0 and third['failed'] == third['threads'], f'{third}')
    check(profd.stderr.count(line) == 1, profd.stderr)
    check(profd.stderr.count('has crashed by SIGSEGV') == 2, profd.stderr)
    profd.interrupt()
    program.process.stdin.close()
    check(program.wait() == 0 and program.stderr == '', program.report())


if __name__ == '__main__':
    harness.main(globals())
