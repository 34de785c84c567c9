#!/usr/bin/python3
"""A profiled program that crashes has its crash report: its reporter can attach
to all of its threads, in each of the ways in which reporters work
(tests/targets/crash.c). Its exit status, its own system calls and the other
targets are as without the profiler.
"""

import os
import random
import shutil
import subprocess
import time

import crashes
import harness
from account import check_sums
from crashes import check_end, crash, start
from harness import check, in_turns, wait_for
from progress import Progress
from service import Service, tell
from test_control import listening
from test_transparency_calls import check_calls, kinds

harness.filters_kill()

# The reason in the statistics for the samples that are missed because a process
# is left to its crash reporter.
MISSED = 'crash'

# So many looks of capture between two events, and a sample comes.
LOOKS = 30


def go(program):
    tell(program, '')


def check_nothing_wrong(text):
    check('wrong' not in text, text)


def samples(profd, tids):
    """Returns the times of the samples of these threads."""
    names = {str(tid) for tid in tids}
    return [s['timestamp'] for c in profd.chunks for s in c['profile']['samples']
            if s['thread_id'] in names]


def profilers(profd, tids):
    """Returns the profiler ids of the chunks that have samples of these threads."""
    names = {str(tid) for tid in tids}
    return {c['profiler_id'] for c in profd.chunks
            if any(s['thread_id'] in names for s in c['profile']['samples'])}


def figures(profd, pid):
    return next(t for t in profd.stats['targets'] if t['pid'] == pid)


# Without the profiler.

def test_alone(box):
    """The program's reports are complete without the profiler, whatever its
    options are: else the other tests would prove nothing."""
    rng = random.Random(os.environ.get('SEED', 'alone'))
    for i in range(30):
        options = crashes.draw(rng, rng.choice((1, 2, 5, 50)))
        program = start(box, **options)
        crash(program)
        check(program.stderr == '', program.report())
    program = start(box, threads=1000, way='helper')
    crash(program)


# Each way of reporting, under --pid.

def profile_crash(box, *args, beside=True, **options):
    """Profiles a program until it has crashed, with another target beside it;
    checks both. Returns sentry-profd, after its end."""
    program = start(box, **options)
    other = Progress(box)
    tids = harness.threads(program.pid)
    profd = box.profd([program, other], *args).wait_attached()
    profd.wait_looks(LOOKS)
    since = time.time()
    profd.wait_looks(LOOKS)
    crash(program)
    other.check_going_on()
    check(all(harness.tracer(t) for t in harness.threads(other.pid)), 'the other is left')
    profd.interrupt()
    other.check_untouched()
    check_sums(profd.stats, arrived='written')
    times = samples(profd, tids)
    check(times and max(times) > since, 'no sample of the time before the crash')
    check(len(profilers(profd, tids)) == 1, f'{profilers(profd, tids)}')
    check(profd.stderr.count('has crashed by SIG') == 1, profd.stderr)
    return profd


def test_forked_reporter(box):
    """Rust's minidump-writer and others: a child attaches to its parent."""
    profile_crash(box, way='fork')


def test_reporter_by_clone(box):
    """Breakpad's way, which reads the stacks word by word."""
    profile_crash(box, way='clone', read='peek', who='other', stack='alt')


def test_long_lived_reporter(box):
    """Crashpad's way: it gives up if it cannot attach to the main thread."""
    profile_crash(box, way='helper', read='mem', stack='alt')


def test_seize(box):
    profile_crash(box, way='helper', attach='seize', who='other')


def test_memory_file(box):
    profile_crash(box, read='mem', attach='seize')


def test_stopped_process(box):
    """minidump-writer stops the process by SIGSTOP first."""
    profile_crash(box, stops=1, signal='ABRT')


def test_a_thousand_threads(box):
    profile_crash(box, '--rate', '997', threads=1000, way='helper', who='other')


def test_one_thread(box):
    profile_crash(box, '--rate', '997', threads=1, signal='FPE')


def test_stack_overflow(box):
    profile_crash(box, threads=5, stack='overflow')
    profile_crash(box, threads=5, stack='overflow', who='other', way='clone')


def test_handler_without_a_mask(box):
    """SA_NODEFER: the signal is not blocked in the handler."""
    profile_crash(box, threads=5, nodefer=1, stack='alt', signal='BUS')


def test_two_threads_at_once(box):
    profile_crash(box, threads=10, crashers=2)
    profile_crash(box, threads=10, crashers=2, signal='ABRT', way='helper')


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


def test_at_once(box):
    """The crash comes as soon as the thread is traced, while others are still
    attached to."""
    for _ in range(3):
        program = start(box, go='traced', who='other', threads=200)
        profd = box.profd([program], '--rate', '997')
        check_end(program)
        profd.finish()
        check_sums(profd.stats, arrived='written')


def test_no_reporter(box):
    """The handler only ends the process."""
    profile_crash(box, way='none', end='exit', status=3)


def test_stay(box):
    """With on_crash = stay the handler runs traced."""
    program = start(box)
    profd = box.profd([program], '--on-crash', 'stay').wait_attached()
    go(program)
    check(program.wait() == crashes.status(program.options), program.report())
    report, = crashes.reports(program.stdout)
    check(report['attached'] == 0 and report['failed'] == report['threads'], f'{report}')
    profd.finish()


# A command.

def command(box, *args, **options):
    """Runs the program as a command of sentry-profd, to its end."""
    profd = box.profd([], *args, '--', crashes.EXE, *crashes.arguments(options),
                      stdin=subprocess.PIPE)
    profd.options = options
    return profd


def check_command(profd):
    status = crashes.status(profd.options)
    profd.finish(128 - status if status < 0 else status)
    crashes.check_reports(profd.stdout, profd.options)
    check_nothing_wrong(profd.stderr)
    check_sums(profd.stats, arrived='written')


def test_command(box):
    for options in ({'way': 'fork', 'signal': 'SEGV'},
                    {'way': 'helper', 'signal': 'ABRT', 'who': 'other'},
                    {'way': 'clone', 'signal': 'ILL', 'end': 'exit', 'status': 7}):
        profd = command(box, threads=20, **options)
        profd.pids = [int(profd.wait_line(r'ready (\d+)')[1])]
        profd.wait_attached().wait_looks(LOOKS)
        go(profd)
        check_command(profd)
        check(profd.chunks, 'no chunk')


def test_command_that_crashes_at_once(box):
    for way in crashes.WAYS:
        check_command(command(box, threads=3, go='now', way=way))


def test_children(box):
    """The parent is a shell; the crashed program and its long-lived helper are
    children. The forked reporter is not attached to."""
    for way in ('fork', 'helper'):
        options = {'threads': 20, 'way': way}
        profd = box.profd([], '--children', '--chunk-seconds', '1', '--', 'sh', '-c',
                          '"$@"; exit $?', 'sh', crashes.EXE, *crashes.arguments(options),
                          stdin=subprocess.PIPE)
        pid = int(profd.wait_line(r'ready (\d+)')[1])
        wait_for(lambda p=pid: all(harness.tracer(t) for t in harness.threads(p)),
                 'the child is profiled')
        profd.wait_looks(LOOKS)
        go(profd)
        profd.finish(128 + crashes.number('SEGV'))
        report, = crashes.reports(profd.stdout)
        check(crashes.is_complete(report), f'{report}')
        check(way == 'helper' or report['traced'] == 0, 'the reporter is traced')
        check_nothing_wrong(profd.stderr)
        check_sums(profd.stats, arrived='written')


# The service.

def service_of(box, *args):
    """A daemon that finds copies of the program, and their children."""
    exe = box.make_dir('bin') / 'crash'
    shutil.copy(crashes.EXE, exe)
    service = Service(box, {'web': {'exe': exe}}, *args)
    service.exe['web'] = exe
    return service


def test_reporter_is_left_alone(box):
    """The section matches the reporter, a child of the program, too. While the
    report is written, discovery leaves it alone, but finds others."""
    service = service_of(box)
    program = start(box, exe=service.exe['web'], holds=1)
    service.wait_profiled(program.pid)
    go(program)
    reporter = int(program.wait_line(r'holding (\d+)')[1])
    for _ in range(2):
        another = start(box, exe=service.exe['web'], threads=2)
        service.wait_profiled(another.pid)
        another.end()
    check(harness.tracer(reporter) == 0, 'the reporter is traced')
    check({harness.tracer(t) for t in harness.threads(program.pid)} == {reporter},
          'another process traces the program')
    go(program)
    check_end(program)
    service.stop()
    check_sums(service.profd.stats, arrived='written')


def test_survivor(box):
    """The process survives: the same run of the profiler goes on."""
    program = start(box, survive=1, end='on', threads=10)
    other = Progress(box)
    tids = harness.threads(program.pid)
    profd, ctl = listening(box, [program, other], '--chunk-seconds', '1')
    profd.wait_attached().wait_looks(LOOKS)
    before = ctl.target(program.pid)
    go(program)
    program.wait_line('survived 1')
    crashes.check_reports(program.stdout, program.options)
    profd.wait_attached()
    since = time.time()
    profd.wait_looks(LOOKS)
    profd.wait_chunks(2)
    after = ctl.wait_state(program.pid, 'profiling')
    check(before['profiler_id'] == after['profiler_id'] is not None, f'{before} {after}')
    program.process.stdin.close()
    check(program.wait() == 0 and program.stderr == '', program.report())
    other.check_going_on()
    profd.interrupt()
    check(profilers(profd, tids) == {before['profiler_id']}, 'its profiler')
    check(max(samples(profd, tids)) > since, 'no sample after the crash')
    check(figures(profd, program.pid)['missed'].get(MISSED, 0) > 0, f'{profd.stats}')
    check(MISSED not in figures(profd, other.pid)['missed'], f'{profd.stats}')
    check(profd.stats['crashes'] == {'left': 1, 'traced': 0}, f'{profd.stats}')
    check_sums(profd.stats, arrived='written')


def test_status_in_a_crash(box):
    """While the report is written, the status says so."""
    program = start(box, holds=1)
    profd, ctl = listening(box, [program])
    profd.wait_attached().wait_looks(LOOKS)
    go(program)
    program.wait_line(r'holding (\d+)')
    ctl.wait_state(program.pid, 'crashed')
    go(program)
    check_end(program)
    profd.finish()


def test_ended_in_a_crash(box):
    """sentry-profd ends while the report is written."""
    program = start(box, holds=1)
    profd = box.profd([program]).wait_attached()
    profd.wait_looks(LOOKS)
    go(program)
    program.wait_line(r'holding (\d+)')
    profd.interrupt()
    go(program)
    check_end(program)
    check_sums(profd.stats, arrived='written')


def test_ordinary_work(box):
    """After two crashes that it has survived the signal no longer counts: one
    line says so, and the third handler runs traced."""
    program = start(box, survive=3, end='on', threads=5)
    profd = box.profd([program]).wait_attached()
    line = f'process {program.pid} (crash) goes on after SIGSEGV: '
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
