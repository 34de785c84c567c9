#!/usr/bin/python3
"""sentry-profctl stack of threads that do not stop, or stop late, and of a process that the daemon
profiles."""

import os
import re
import signal
import subprocess

import harness
import stranger
from harness import BUILD, check
from test_control import listening
from test_profctl import parse, run


def start_vforks(box, n, start=harness.Box.target):
    """Returns {thread: the child that it waits for}. Only the child's end ends
    the wait."""
    target = start(box, 'vforks', n)
    children = {int(tid): int(pid) for tid, pid in
                re.findall(r'^child (\d+) (\d+)$', target.stdout, re.M)}
    check(len(children) == n, f'{children}')
    harness.wait_for(lambda: all(harness.state(t) == 'D' for t in children),
                     'they wait')
    return target, children


def start_oracle(target):
    return subprocess.Popen(
        [BUILD / 'sentry-profctl', 'stack', '--oracle', str(target.pid)],
        stdout=subprocess.PIPE, text=True, env=harness.environment())


def test_who_does_not_stop_is_told_of(box):
    """A thread that does not stop, as with a disk that does not answer, is
    reported. The others are shown."""
    target, children = start_vforks(box, 2)
    # Without a stop the return address of vfork, which is in a register only,
    # is unknown.
    threads = parse(run('stack', target.pid).stdout)
    for tid in children:
        check('wait_for_child' in threads[tid].names,
              f'{tid}: {threads[tid].names}')
    command = start_oracle(target)
    threads = parse(command.communicate()[0])
    check(command.returncode == 0, f'status {command.returncode}')
    check(threads[target.pid].end == 'root', 'the main thread is not shown')
    for tid in children:
        check('does not stop' in (threads[tid].missed or ''),
              f'{tid}: {threads[tid].missed}')
        check(harness.tracer(tid) == 0, 'it is still traced')
    for child in children.values():
        os.kill(child, signal.SIGKILL)
    target.wait_line('done')


def test_who_stops_late_goes_on(box):
    """A thread that stops late is continued while others are waited for."""
    def turn():
        target, children = start_vforks(box, 30)
        first, last = min(children), max(children)
        command = start_oracle(target)
        check(any('not seen' in line for line in command.stdout),
              'the first has not stopped')
        os.kill(children[first], signal.SIGKILL)
        harness.wait_for(lambda: harness.tracer(first) == 0, 'it is let go of')
        found = [] if harness.tracer(last) == command.pid \
            else ['the command was at its end']
        command.kill()
        command.communicate()
        del children[first]
        for child in children.values():
            os.kill(child, signal.SIGKILL)
        target.wait_line('done')
        return found
    harness.in_turns(turn)


def test_an_oracle_has_no_more_rights_than_its_target(box):
    """The oracle drops its rights before it reads a file, so also while it
    waits for a thread."""
    stranger.need_root()

    def rights(pid):
        return [harness.proc_status(pid, field)
                for field in ('Uid', 'Gid', 'CapPrm', 'CapEff')]
    for start, n in ((stranger.target, 1), (harness.Box.target, 2)):
        target, children = start_vforks(box, n, start)
        command = start_oracle(target)
        check(any(line.startswith('  libunwind: the same')
                  for line in command.stdout), 'the main thread is not shown')
        check(command.poll() is None and
              rights(command.pid) == rights(target.pid),
              f'{rights(command.pid)} {rights(target.pid)}')
        check(harness.proc_status(command.pid, 'NoNewPrivs') == '1', 'exec')
        command.communicate()
        for child in children.values():
            os.kill(child, signal.SIGKILL)
        target.wait_line('done')


def test_of_a_process_that_the_daemon_profiles(box):
    """The stacks of running and of waiting threads of a process that the
    daemon profiles; and of a process to which the daemon attaches for this."""
    targets = [box.target('unw_o2', mode) for mode in ('spin', 'threads')]
    other = box.target('unw_fp', 'spin')
    profd, ctl = listening(box, targets)
    profd.wait_attached().wait_looks()
    for target, names in ((targets[0], ['leaf_spin']), (other, ['leaf_spin']),
                          (targets[1], ['leaf_futex', 'leaf_nanosleep',
                                        'leaf_poll', 'leaf_read'])):
        threads = parse(ctl.run('stack', target.pid).stdout)
        check(sorted(threads) == harness.threads(target.pid), f'{threads}')
        check(sorted(n for t in threads.values() for n in t.names
                     if n and n.startswith('leaf_')) == names,
              f'{target.pid}: {[t.names for t in threads.values()]}')
    harness.wait_for(lambda: not harness.tracer(other.pid), 'it is let go')
    ctl.wait_state(targets[0].pid, 'profiling')
    check('no such process' in ctl.run('stack', 2**22, status=1).stderr, 'gone')
    profd.interrupt()


if __name__ == '__main__':
    harness.main(globals())
