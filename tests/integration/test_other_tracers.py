#!/usr/bin/python3
"""A target that another process traces: one line names the tracer, and when
that detaches or dies, the target is profiled. test_job_control.py has tracers
that attach later.
"""

import shutil
import signal
import time

import harness
from account import check_sums
from harness import BUILD, Skip, check, wait_for

harness.filters_kill()


def line(target, name, pid):
    return (f'sentry-profd: warning: process {target.pid} is traced by {name} '
            f'(pid {pid}) now: profiling starts when that tracer '
            'detaches')


def wait_for_line(profd, text):
    wait_for(lambda: text in profd.stderr.splitlines(), f'"{text}"')


def check_profiled(profd, *lines):
    """Checks that the target is profiled from here on, and that no further
    line was logged."""
    profd.wait_attached()
    profd.wait_chunks(2)
    profd.interrupt()
    said = [l for l in profd.stderr.splitlines() if 'no release' not in l]
    check(said == list(lines), f'{said}')
    check_sums(profd.stats, arrived='written')
    check(profd.stats['samples_taken'] > 0, f'{profd.stats}')


def test_one_that_dies(box):
    target, other = box.napper(), box.napper()
    tracer = box.target('tracer', target.pid)
    profd = box.profd([target, other], '--chunk-seconds', '1')
    wait_for_line(profd, line(target, 'tracer', tracer.pid))
    # The other target does not wait.
    wait_for(lambda: harness.tracer(other.pid), 'the other is profiled')
    check(harness.tracer(target.pid) == tracer.pid, 'its tracer has lost it')
    tracer.end()
    check_profiled(profd, line(target, 'tracer', tracer.pid))


def test_one_that_comes_and_goes(box):
    """The target is attached to between two visits of the other tracer, or
    after the last."""
    target = box.napper()
    tracers = [box.target('tracer', target.pid)]
    profd = box.profd([target], '--chunk-seconds', '1')
    wait_for_line(profd, line(target, 'tracer', tracers[0].pid))
    for _ in range(20):
        tracers[-1].end()
        tracers.append(box.start([BUILD / 'targets/tracer', target.pid]))
        time.sleep(0.02)
    tracers[-1].end()
    check_profiled(profd, line(target, 'tracer', tracers[0].pid))


def in_vain(target):
    return (f'sentry-profd: process {target.pid} was not profiled: another '
            'process traced it all the time')


def check_in_vain(profd, target, tracer):
    profd.finish(status=1)
    check(in_vain(target) in profd.stderr.splitlines(), profd.stderr)
    check(harness.tracer(target.pid) == tracer.pid and target.running(),
          'its tracer has lost it')


def test_ended_before_it_lets_go(box):
    target = box.napper()
    tracer = box.target('tracer', target.pid)
    profd = box.profd([target])
    wait_for_line(profd, line(target, 'tracer', tracer.pid))
    profd.signal(signal.SIGINT)
    check_in_vain(profd, target, tracer)


def test_duration_before_it_lets_go(box):
    """--duration also ends a run in which capture could attach to no target.
    """
    target = box.napper()
    tracer = box.target('tracer', target.pid)
    profd = box.profd([target], '--duration', '0.5')
    check_in_vain(profd, target, tracer)
    check(profd.stats['duration_s'] == 0, f'{profd.stats}')


def test_duration_with_one_that_lets_go(box):
    """--duration counts from the first attachment."""
    target = box.napper()
    tracer = box.target('tracer', target.pid)
    began = time.monotonic()
    profd = box.profd([target], '--duration', '3')
    wait_for_line(profd, line(target, 'tracer', tracer.pid))
    tracer.end()
    profd.finish()
    check_sums(profd.stats, arrived='written')
    check(profd.stats['duration_s'] >= 3, f'{profd.stats}')
    # With the time of the wait it would be longer.
    check(profd.stats['duration_s'] < time.monotonic() - began,
          f'{profd.stats}')


def test_duration_with_another_target(box):
    """The other target is profiled for the whole duration, and the exit status
    is not success."""
    target, other = box.napper(), box.napper()
    tracer = box.target('tracer', target.pid)
    profd = box.profd([target, other], '--duration', '2')
    check_in_vain(profd, target, tracer)
    figures = {t['pid']: t for t in profd.stats['targets']}
    check(figures[target.pid]['samples_expected'] == 0 and
          figures[other.pid]['samples_taken'] > 0, f'{figures}')
    check(f'process {other.pid}' not in profd.stderr, profd.stderr)


def test_the_target_ends_before(box):
    target = box.napper()
    tracer = box.target('tracer', target.pid)
    profd = box.profd([target])
    wait_for_line(profd, line(target, 'tracer', tracer.pid))
    target.end()
    profd.finish(status=1)
    check(f'sentry-profd: process {target.pid} has ended before it could be '
          'profiled' in profd.stderr.splitlines(), profd.stderr)


def test_another_of_ours(box):
    target = box.napper()
    first = box.profd([target], '--chunk-seconds', '1').wait_attached()
    second = box.profd([target], '--chunk-seconds', '1')
    said = (f'sentry-profd: warning: process {target.pid} is profiled by '
            f'another sentry-profd now: sentry-profctl stack {target.pid}, or '
            f'record {target.pid} -o profile.html, shows what it does, if '
            'that daemon has a socket; profiling starts here when that daemon '
            'detaches')
    wait_for_line(second, said)
    first.wait_chunks(2)
    first.interrupt()
    check_profiled(second, said)


def need(program):
    if not shutil.which(program):
        raise Skip(f'{program} is not there')


def wait_traced(target):
    return wait_for(lambda: harness.tracer(target.pid), 'its tracer')


def test_strace(box):
    need('strace')
    target = box.napper()
    strace = box.start(['strace', '-f', '-o', '/dev/null', '-p', target.pid])
    pid = wait_traced(target)
    profd = box.profd([target], '--chunk-seconds', '1')
    wait_for_line(profd, line(target, 'strace', pid))
    strace.signal(signal.SIGINT)
    strace.wait()
    check_profiled(profd, line(target, 'strace', pid))


def test_gdb(box):
    need('gdb')
    target = box.napper()
    go = box.dir / 'go'
    gdb = box.start(['gdb', '-nx', '-batch', '-p', target.pid, '-ex',
                     f'shell until [ -e {go} ]; do sleep 0.1; done', '-ex',
                     'detach'])
    pid = wait_traced(target)
    profd = box.profd([target], '--chunk-seconds', '1')
    wait_for_line(profd, line(target, 'gdb', pid))
    go.touch()
    gdb.wait()
    check_profiled(profd, line(target, 'gdb', pid))


def test_the_daemon_under_strace(box):
    """strace traces all processes of the daemon, which trace targets; and
    strace may be ended."""
    need('strace')
    target = box.napper()
    profd = box.profd([target], '--chunk-seconds', '1')
    strace = box.start(['strace', '-f', '-o', '/dev/null', '-p', profd.pid])
    wait_for(lambda: harness.tracer(profd.pid), 'strace')
    profd.wait_attached()
    capture, = profd.helpers()['capture']
    second = box.start(['strace', '-f', '-o', '/dev/null', '-p', capture])
    wait_for(lambda: harness.tracer(capture) or not second.running(), 'strace')
    profd.wait_chunks(2)
    second.signal(signal.SIGINT)
    strace.signal(signal.SIGINT)
    strace.wait()
    check(profd.helpers()['capture'] == [capture], 'capture was replaced')
    check_profiled(profd)


if __name__ == '__main__':
    harness.main(globals())
