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
from harness import check, wait_for
from progress import Progress
from service import Service, tell
from test_control import listening

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


def test_one_thread(box):
    profile_crash(box, '--rate', '997', threads=1, signal='ILL')


def test_stack_overflow(box):
    profile_crash(box, threads=5, stack='overflow')
    profile_crash(box, threads=5, stack='overflow', who='other', way='clone')


def test_handler_without_a_mask(box):
    """SA_NODEFER: the signal is not blocked in the handler."""
    profile_crash(box, threads=5, nodefer=1, stack='alt', signal='BUS')


def test_two_threads_at_once(box):
    profile_crash(box, threads=10, crashers=2)
    profile_crash(box, threads=10, crashers=2, signal='ABRT', way='helper')


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


if __name__ == '__main__':
    harness.main(globals())
