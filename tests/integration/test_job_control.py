#!/usr/bin/python3
"""SIGTSTP makes the daemon detach from its targets before it stops, and
SIGCONT makes it attach again. It waits for a debugger that has attached
meanwhile.
"""

import os
import re
import signal
import time

import chunk_rules
import harness
from account import check_sums
from harness import check, wait_for
from progress import Progress

harness.filters_kill()


def start(box, targets, *args):
    """Starts the daemon in a process group of its own, as a shell does. The
    kernel does not stop an orphaned group."""
    return box.profd(targets, *args, process_group=0).wait_attached()


def suspend(profd):
    """Stops the daemon, and waits for the stop, as a shell does."""
    profd.signal(signal.SIGTSTP)
    info = wait_for(lambda: os.waitid(os.P_PID, profd.pid, os.WSTOPPED |
                                      os.WNOHANG | os.WNOWAIT),
                    'the daemon is stopped')
    check(info.si_status == signal.SIGTSTP, f'it is stopped by {info}')


def check_free(target):
    """Checks that the targets are free as soon as the daemon has stopped."""
    for tid in harness.threads(target.pid):
        check(harness.tracer(tid) == 0 and harness.state(tid) not in 'tT',
              f'thread {tid}: tracer {harness.tracer(tid)}, state '
              f'{harness.state(tid)}')


def lines(profd):
    return profd.stderr.splitlines()


def check_figures(profd):
    found = [text for e in profd.envelopes for text in chunk_rules.problems(e)]
    for profiler in {c['profiler_id'] for c in profd.chunks}:
        found += chunk_rules.stream_problems(
            [c for c in profd.chunks if c['profiler_id'] == profiler])
    # Unknown time is in no chunk. A thread that was only seen at one tick
    # before has one sample, or none yet at the chunk's first tick.
    found = [f for f in found if not
             re.search(r'^\+.* s between two|not two samples with|'
                       r'starts after its chunk', f)]
    check(found == [], f'{found[:5]}')
    check_sums(profd.stats, arrived='written')


def busy_bars(profd):
    names = {}
    for chunk in profd.chunks:
        for tid, thread in chunk['profile']['thread_metadata'].items():
            names[tid] = thread.get('name', '')
    return [b for c in profd.chunks for b in chunk_rules.bars(c)
            if names[b.thread].startswith('busy')]


def check_away(profd, begin, end):
    """Checks that no thread has time between these two moments, and that all
    have some before and after."""
    bars = busy_bars(profd)
    threads = {b.thread for b in bars}
    check(len(threads) == 4, f'{threads}')
    for tid in threads:
        own = [b for b in bars if b.thread == tid]
        check(min(b.start for b in own) < begin and
              max(b.start + b.seconds for b in own) > end,
              f'thread {tid} has no time before or after')
    # Times are exact to a tick.
    invented = [(b.start, b.seconds) for b in bars
                if b.start < end - 0.01 and b.start + b.seconds > begin + 0.01]
    check(invented == [], f'time between {begin} and {end}: {invented[:5]}')


def seconds_without(profd, target):
    """Returns the seconds for which the threads have no samples because there
    was no capture."""
    figures = profd.stats['targets'][0]
    return figures['missed'].get('no_capture', 0) / figures['rate_hz'] / \
        len(harness.threads(target.pid))


def test_suspended_and_continued(box):
    target = Progress(box)
    began = time.time()
    profd = start(box, [target], '--chunk-seconds', '1')
    away, changing = [], 0
    for _ in range(2):
        profd.wait_chunks()
        asked = time.time()
        suspend(profd)
        changing += time.time() - asked
        check_free(target)
        begin = time.time()
        check(profd.helpers()['capture'] == [], 'capture is still there')
        target.check_going_on()
        wait_for(lambda: time.time() > begin + 0.5, 'time passes')
        end = time.time()
        check_free(target)
        profd.signal(signal.SIGCONT)
        profd.wait_attached()
        changing += time.time() - end
        away.append((begin, end))
    profd.wait_chunks(2)
    profd.interrupt()
    most = time.time() - began - sum(end - begin for begin, end in away)
    check(lines(profd) == [], f'{profd.stderr}')
    check_figures(profd)
    for begin, end in away:
        check_away(profd, begin, end)
    stats = profd.stats
    # That time is neither expected nor counted.
    check(stats['duration_s'] < most, f'{stats["duration_s"]} s of {most}')
    late = stats['missed'].get('sampler_late', 0) + 20 + \
        stats['rate_hz'] * changing
    check(stats['rate_hz'] * stats['duration_s'] - late <= stats['ticks'] <=
          stats['rate_hz'] * most,
          f'{stats["ticks"]} ticks in {stats["duration_s"]} s, {late} late')
    # The daemon was stopped for a second or more.
    check(seconds_without(profd, target) < changing + 0.5,
          f'{stats["missed"]}, let go and attached in {changing:.2f} s')
    target.check_untouched()


def test_the_duration_stands_still(box):
    target = Progress(box, 1)
    began = time.monotonic()
    profd = start(box, [target], '--duration', '2')
    suspend(profd)
    paused = time.monotonic()
    wait_for(lambda: time.monotonic() > paused + 3, 'the time passes')
    paused = time.monotonic() - paused
    profd.signal(signal.SIGCONT)
    profd.finish()
    check(1.9 < profd.stats['duration_s'] < time.monotonic() - began - paused,
          f'{profd.stats}')
    check_figures(profd)


def test_ended_while_suspended(box):
    """A signal that came while the daemon was stopped ends it when it
    continues."""
    target = Progress(box, 1)
    profd = start(box, [target], '--chunk-seconds', '1')
    profd.wait_chunks()
    suspend(profd)
    profd.signal(signal.SIGTERM)
    profd.signal(signal.SIGCONT)
    profd.finish()
    check_figures(profd)
    check(lines(profd) == [], f'{profd.stderr}')
    target.check_untouched()


def test_target_ends_meanwhile(box):
    target = Progress(box, 1)
    profd = start(box, [target], '--chunk-seconds', '1')
    profd.wait_chunks()
    suspend(profd)
    target.program.end()
    profd.signal(signal.SIGCONT)
    profd.finish()
    check_figures(profd)
    check(lines(profd) == [], f'{profd.stderr}')


def test_capture_does_not_let_go(box):
    """A capture that hangs is killed."""
    target = Progress(box, 1)
    profd = start(box, [target], '--chunk-seconds', '1')
    capture, = profd.helpers()['capture']
    os.kill(capture, signal.SIGSTOP)
    suspend(profd)
    check_free(target)
    target.check_going_on()
    profd.signal(signal.SIGCONT)
    profd.wait_attached()
    profd.interrupt()
    check_figures(profd)
    target.check_untouched()


def test_ignored(box):
    """Some shells without job control ignore SIGTSTP."""
    target = Progress(box, 1)
    profd = box.profd([target], '--chunk-seconds', '1', process_group=0,
                      wrapper=['sh', '-c', 'trap "" TSTP; exec "$@"', 'sh'])
    capture = wait_for(lambda: harness.tracer(target.pid), 'a tracer')
    profd.signal(signal.SIGTSTP)
    profd.wait_chunks(2)
    check(harness.tracer(target.pid) == capture, 'it has another tracer')
    profd.interrupt()


def wait_for_line(profd, pattern):
    wait_for(lambda: pattern in profd.stderr, f'the line "{pattern}"')


def traced_by(target, tracer):
    return (f'sentry-profd: warning: process {target.pid} is traced by tracer (pid '
            f'{tracer.pid}) now: profiling starts when that tracer detaches')


def test_a_debugger_came_meanwhile(box):
    """An attached debugger is no error. When it detaches, profiling goes on.
    """
    target, other = Progress(box), box.napper()
    profd = start(box, [target, other], '--chunk-seconds', '1')
    profd.wait_chunks(2)
    suspend(profd)
    tracer = box.target('tracer', target.pid)
    begin = time.time()
    profd.signal(signal.SIGCONT)
    wait_for_line(profd, traced_by(target, tracer))
    wait_for(lambda: harness.tracer(other.pid), 'the other one is profiled')
    # The process is checked repeatedly, and reported once.
    profd.wait_chunks(3)
    check(harness.tracer(target.pid) == tracer.pid, 'its tracer has lost it')
    end = time.time()
    tracer.end()
    profd.wait_attached()
    attaching = time.time() - end
    profd.wait_chunks(4)
    profd.interrupt()
    check(lines(profd) == [traced_by(target, tracer)], f'{profd.stderr}')
    check_figures(profd)
    check_away(profd, begin, end)
    check(seconds_without(profd, target) < attaching + (end - begin) / 2,
          f'{profd.stats}, attached after {attaching:.2f} s')
    target.check_untouched()


def test_ended_while_a_debugger_is_there(box):
    target = Progress(box, 1)
    profd = start(box, [target], '--chunk-seconds', '1')
    profd.wait_chunks()
    suspend(profd)
    tracer = box.target('tracer', target.pid)
    profd.signal(signal.SIGCONT)
    wait_for_line(profd, traced_by(target, tracer))
    profd.interrupt()
    check_figures(profd)
    check(harness.tracer(target.pid) == tracer.pid, 'its tracer has lost it')


def test_a_debugger_is_faster_than_the_next_capture(box):
    target = Progress(box, 1)
    profd = start(box, [target], '--chunk-seconds', '1')
    profd.wait_chunks()
    # The second restart in a row is delayed.
    first, = profd.helpers()['capture']
    os.kill(first, signal.SIGKILL)
    second = wait_for(lambda: [p for p in profd.helpers()['capture']
                               if p != first], 'another capture')[0]
    profd.signal(signal.SIGSTOP)
    os.kill(second, signal.SIGKILL)
    wait_for(lambda: harness.tracer(target.pid) == 0, 'the target is let go')
    tracer = box.target('tracer', target.pid)
    profd.signal(signal.SIGCONT)
    wait_for_line(profd, traced_by(target, tracer))
    tracer.end()
    profd.wait_attached()
    profd.wait_chunks(2)
    profd.interrupt()
    check_figures(profd)
    check(profd.stderr.count(traced_by(target, tracer)) == 1, profd.stderr)
    target.check_untouched()


if __name__ == '__main__':
    harness.main(globals())
