#!/usr/bin/python3
"""Stopping and continuing: a parent of a profiled child sees each change once,
as without the profiler, and a shell's job control works.
"""

import os
import pty
import random
import re
import select
import signal
import time

import harness
import life
from account import check_sums
from harness import BUILD, Failure, check, wait_for
from progress import Progress

harness.filters_kill()

SEED = int(os.environ.get('SEED') or random.randrange(10**6))

STOPS = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
ALL = os.WEXITED | os.WSTOPPED | os.WCONTINUED


def next_change(pid):
    """Returns the next change that the parent sees, by SIGCHLD and then by
    waitid(2)."""
    # The order matters: after waitid(2) the signal has no status.
    child = signal.sigtimedwait({signal.SIGCHLD}, harness.PATIENCE_S)
    check(child is not None and child.si_pid == pid,
          f'no SIGCHLD for a change: {child}')
    info = os.waitid(os.P_PID, pid, ALL | os.WNOHANG)
    check(info is not None and
          (child.si_code, child.si_status) == (info.si_code, info.si_status),
          f'waitid says {info}, SIGCHLD {child}')
    return info.si_code, info.si_status


def check_nothing_more(pid):
    check(os.waitid(os.P_PID, pid, ALL | os.WNOHANG) is None and
          signal.sigtimedwait({signal.SIGCHLD}, 0) is None,
          'its parent is told of another change')


def stop_and_continue(rng, target, rounds):
    """Checks what the parent sees. Between two changes the child runs, or
    waits, for a time that is no multiple of a tick."""
    seen = []
    for _ in range(rounds):
        number = rng.choice(STOPS)
        target.program.signal(number)
        seen.append(next_change(target.pid))
        check(seen[-1] == (os.CLD_STOPPED, number), f'a stop: {seen[-1]}')
        # A stopped child is not stopped again.
        for again in rng.sample(STOPS, rng.randrange(3)):
            target.program.signal(again)
        time.sleep(rng.uniform(0, 0.03))
        check_nothing_more(target.pid)
        target.program.signal(signal.SIGCONT)
        seen.append(next_change(target.pid))
        check(seen[-1][0] == os.CLD_CONTINUED, f'a SIGCONT: {seen[-1]}')
        # SIGCONT to a running child is handled by the child only.
        if rng.random() < 0.3:
            target.program.signal(signal.SIGCONT)
        time.sleep(rng.uniform(0, 0.03))
        check_nothing_more(target.pid)
    target.check_going_on()
    target.program.signal(signal.SIGSTOP)
    seen.append(next_change(target.pid))
    target.program.signal(signal.SIGKILL)
    seen.append(next_change(target.pid))
    return seen


def parents_view(box, rate, more=()):
    rng = random.Random(SEED)
    # A process group of its own that is not orphaned, so that terminals may
    # stop it.
    target = Progress(box, process_group=0)
    profd = box.profd([target], '--rate', rate, *more).wait_attached() if rate \
        else None
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    try:
        signal.sigtimedwait({signal.SIGCHLD}, 0)
        seen = stop_and_continue(rng, target, 40)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if profd:
        profd.finish()
        life.check_quiet(profd)
        check_sums(profd.stats, arrived='written')
    return seen


def check_view(box, more=()):
    """more: options of the daemon."""
    try:
        alone = parents_view(box, None)
        for rate in life.RATES:
            life.check_same(alone, parents_view(box, rate, more), rate)
    except Failure as e:
        raise Failure(f'{e} (SEED={SEED})') from e


def test_the_parents_view(box):
    check_view(box)


class Shell:
    """An interactive bash on a terminal of its own."""

    def __init__(self, box):
        self.fd, side = pty.openpty()
        self.text = ''
        self.nudge = ''
        env = harness.environment(PS1='<prompt>', TERM='dumb', HISTFILE='',
                                  INPUTRC='/dev/null')
        self.program = box.start(
            # A test in the background ignores ^C, and all its children would,
            # too.
            ['env', '--default-signal=INT,QUIT', 'setsid', '--ctty', 'bash', '--norc', '--noprofile',
             '--noediting', '-i'], stdin=side, env=env)
        # The output goes to the terminal, too.
        os.close(side)

    def say(self, text):
        if text:
            os.write(self.fd, text.encode())

    def read(self):
        while select.select([self.fd], [], [], 0)[0]:
            try:
                self.text += os.read(self.fd, 4096).decode(errors='replace')
            except OSError:
                return

    def expect(self, pattern):
        """Waits for this text on the terminal, after the text of the last
        call."""
        def look():
            self.say(self.nudge)
            time.sleep(0.02 if self.nudge else 0)
            self.read()
            return re.search(pattern, self.text, re.M)
        try:
            found = wait_for(look, pattern)
        except Failure:
            raise Failure(f'no {pattern} on the terminal: {self.text!r}') \
                from None
        self.text = self.text[found.end():]
        return found


def use_job(box, rate):
    """Checks what a user sees of a job: ^Z, jobs, bg, jobs, fg, ^Z, fg, ^C."""
    shell = Shell(box)
    seen = []
    path = box.make_dir('progress') / 'counters'
    shell.say(f'exec 1>/dev/tty 2>&1; {BUILD}/targets/progress {path} 2\n')
    pid = int(shell.expect(r'ready (\d+)')[1])
    profd = box.profd([pid], '--rate', rate).wait_attached() if rate else None

    def expect(pattern):
        seen.append(' '.join(shell.expect(pattern)[0].split()))

    def stopped():
        return harness.state(pid) in 'tT'
    for _ in range(3):
        time.sleep(0.1)
        shell.say('\x1a')
        expect(r'\[1\]\+ +Stopped.*progress')
        wait_for(stopped, 'the job is stopped')
        shell.say('jobs\n')
        expect(r'\[1\]\+ +Stopped.*progress')
        shell.say('bg\n')
        expect(r'\[1\]\+ .*progress.* &')
        wait_for(lambda: not stopped(), 'the job runs')
        shell.say('jobs\n')
        expect(r'\[1\]\+ +Running.*progress.* &')
        shell.say('kill -TSTP %1\n')
        # The shell reports the change before its next prompt, once it has
        # noticed it.
        shell.nudge = '\n'
        expect(r'\[1\]\+ +Stopped.*progress')
        shell.nudge = ''
        shell.say('fg\n')
        expect(r'progress .*counters 2')
        wait_for(lambda: not stopped(), 'the job runs')
        # The job is in the terminal's foreground again.
        wait_for(lambda: os.tcgetpgrp(shell.fd) == os.getpgid(pid),
                 'the job is in the foreground')
    shell.say('\x03')
    try:
        wait_for(lambda: harness.state(pid) == '', 'the job ends')
    except Failure as e:
        shell.read()
        raise Failure(f'{e}: state {harness.state(pid)}, group '
                      f'{os.getpgid(pid)}, the terminal\'s '
                      f'{os.tcgetpgrp(shell.fd)}: {shell.text!r}') from None
    shell.say('echo status $?\n')
    expect(r'status \d+\r')
    if profd:
        life.check_profd(profd)
    shell.program.end()
    os.close(shell.fd)
    return [re.sub(r'\d+-progress', 'progress', s.replace(str(box.dir), ''))
            for s in seen]


def test_a_shells_jobs(box):
    alone = use_job(box, None)
    check('status 130' in alone[-1], f'{alone}')
    for rate in life.RATES:
        life.check_same(alone, use_job(box, rate), rate)


if __name__ == '__main__':
    harness.main(globals())
