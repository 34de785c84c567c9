#!/usr/bin/python3
"""The daemon detaches at once when it is told to, whatever its targets do:
afterwards no process is traced, stopped processes are stopped, and running
ones run.

Runs alone: it measures how fast the daemon detaches.
"""

import os
import select
import shutil
import signal
import subprocess
import sys
import time

import harness
import life
import stranger
from account import check_sums
from harness import check, wait_for
from proc import CALLS
from progress import Progress
from test_control import listening

harness.filters_kill()

# The longest time from the signal to the last free thread, on a machine that
# has the time: capture gives up after two seconds, and the broker after three.
# One of some attempts must keep it.
AT_ONCE_S = 1

# How long a resumed call is waited for (lib/capture).
REST_S = 2


def at_once(turn, limit=AT_ONCE_S):
    """turn() detaches, and returns how long that took."""
    def attempt():
        stretch = harness.stretch()
        seconds = turn()
        print(f'  {seconds * 1000:.0f} ms')
        return [] if seconds < limit * stretch else \
            [f'{seconds:.1f} s, and what takes a second took {stretch:.1f}']
    harness.in_turns(attempt)


def say(profd, number):
    """Sends the signal; returns when no process is traced any more, and how
    long that took."""
    tids = [t for pid in profd.pids for t in harness.threads(pid)]
    since = time.monotonic()
    profd.signal(number)
    wait_for(lambda: all(harness.tracer(t) == 0 for t in tids),
             'all are let go')
    return time.monotonic() - since


def end(profd, number):
    if number == signal.SIGTSTP:
        wait_for(lambda: os.waitid(os.P_PID, profd.pid, os.WSTOPPED |
                                   os.WNOHANG | os.WNOWAIT), 'its stop')
        profd.signal(signal.SIGCONT)
        profd.wait_attached()
        profd.signal(signal.SIGINT)
    if number == signal.SIGKILL:
        profd.wait()
        return
    profd.finish()
    life.check_quiet(profd)
    check_sums(profd.stats, arrived='written')


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGTSTP, signal.SIGKILL)


def start(box, targets, *args):
    # The kernel does not stop an orphaned process group.
    return box.profd(targets, *args, process_group=0).wait_attached()


def test_a_thousand_threads(box):
    target = life.start(box, 'life_many', 1000, 0)
    other = Progress(box)
    for number in SIGNALS:
        def turn():
            profd = start(box, [target, other], '--rate', '1000')
            other.check_going_on()
            seconds = say(profd, number)
            end(profd, number)
            other.check_untouched()
            other.check_going_on()
            return seconds
        at_once(turn)
    life.begin(target)
    check(life.transcript(target) == ['woken 1004 failed 0'], target.stdout)


def test_in_a_storm(box):
    for number in SIGNALS:
        def turn():
            target = life.start(box, 'life_storm', 1000, 2)
            profd = start(box, [target], '--rate', '1000')
            before = set(harness.threads(target.pid))
            life.begin(target)
            # Thread ids may wrap at any time.
            wait_for(lambda: set(harness.threads(target.pid)) - before,
                     'threads come')
            seconds = say(profd, number)
            # Threads that were made meanwhile are free, too.
            if number != signal.SIGTSTP:
                wait_for(lambda: all(harness.tracer(t) == 0
                                     for t in harness.threads(target.pid)),
                         'the storm is let go')
            end(profd, number)
            life.transcript(target)
            return seconds
        at_once(turn)


def test_stopped_ones(box):
    """Stopped processes stay stopped, and are not traced."""
    target, stopped_ones_ran = Progress(box), []
    many = life.start(box, 'life_many', 200, 0)
    for program in (target.program, many):
        program.signal(signal.SIGSTOP)
        wait_for(lambda p=program: harness.state(p.pid) == 'T', 'its stop')
    for number in SIGNALS:
        def turn():
            profd = start(box, [target, many], '--rate', '1000')
            before = target.counters()
            seconds = say(profd, number)
            end(profd, number)
            # On the way from one kind of stop to the other the threads are
            # awake, in the kernel.
            for pid in (target.pid, many.pid):
                wait_for(lambda p=pid: {harness.state(t)
                                        for t in harness.threads(p)} == {'T'},
                         f'they are stopped after {number.name}')
            if target.counters() != before:
                stopped_ones_ran.append(number.name)
            return seconds
        at_once(turn)
    check(stopped_ones_ran == [], f'{stopped_ones_ran} let them run')
    for program in (target.program, many):
        program.signal(signal.SIGCONT)
    target.check_going_on()
    life.begin(many)
    # SIGCONT interrupts epoll_wait(2), as signal(7) states.
    check(life.transcript(many) == ['woken 4 failed 200'], many.stdout)


# The pipe needs some hundred ticks or more for these bytes.
SIZE = 64 << 20

WRITER = '''
import os, sys
print('ready', os.getpid(), flush=True)
data = bytes(range(256)) * (int(sys.argv[2]) // 256)
while data:
    n = os.write(int(sys.argv[1]), data)
    print('wrote', n, flush=True)
    data = data[n:]
'''


def rest_of(pid):
    """Returns how many bytes the current write has left; 0: no write is under
    way."""
    words = harness.proc_text(pid, 'syscall').split()
    return int(words[3], 16) if len(words) > 4 and words[0] == str(CALLS['write']) else 0


def until_in_a_rest(writer, reader):
    """Reads until the call is resumed: it was begun with all bytes."""
    data = bytearray()
    while not 0 < rest_of(writer.pid) < SIZE:
        check(writer.running() and len(data) < SIZE, 'no rest was seen')
        if select.select([reader], [], [], 0)[0]:
            data += os.read(reader, 4096)
    return data


def test_in_the_rest_of_a_call(box):
    """A write to a pipe that no process reads is cut short after two seconds,
    and returns the number of bytes written."""
    for number in SIGNALS[:3]:
        at_once(lambda n=number: in_a_rest(box, n), REST_S + AT_ONCE_S)


def start_writer(box):
    reader, pipe = os.pipe()
    writer = box.start([sys.executable, '-c', WRITER, pipe, SIZE],
                       pass_fds=(pipe,))
    writer.wait_line(r'ready \d+')
    os.close(pipe)
    return writer, reader


def read_all(writer, reader, data):
    """Checks that every byte comes, and that the results of the calls add up.
    """
    while len(data) < SIZE:
        data += os.read(reader, 65536)
    check(data == bytes(range(256)) * (SIZE // 256), 'other bytes')
    check(writer.wait() == 0, writer.report())
    wrote = [int(l.split()[1]) for l in writer.stdout.splitlines()[1:]]
    check(sum(wrote) == SIZE, f'{wrote}')
    os.close(reader)


def in_a_rest(box, number):
    writer, reader = start_writer(box)
    profd = start(box, [writer], '--rate', '1000')
    data = until_in_a_rest(writer, reader)
    seconds = say(profd, number)
    if number == signal.SIGTSTP:
        profd.signal(signal.SIGCONT)
    read_all(writer, reader, data)
    profd.finish()
    return seconds


# Executes its argument when a line comes.
BECOMES = r'''
import os, sys
print('ready', os.getpid(), flush=True)
sys.stdin.readline()
os.execv(sys.argv[1], sys.argv[1:])
'''


def test_an_exec_in_the_rest_of_a_call(box):
    """A process that executes a program while capture waits for the resumed call of
    another one does not stand still until capture detaches from both."""
    def turn():
        program = box.make_dir('new') / 'echo'
        shutil.copy('/bin/echo', program)
        other = box.start([sys.executable, '-c', BECOMES, program, 'executed'],
                          stdin=subprocess.PIPE)
        other.wait_line(r'ready \d+')
        writer, reader = start_writer(box)
        profd = start(box, [writer, other], '--rate', '1000')
        data = until_in_a_rest(writer, reader)
        profd.signal(signal.SIGINT)
        # capture begins to wait.
        time.sleep(0.2)
        life.begin(other)
        other.wait_line('executed')
        meanwhile = harness.tracer(writer.pid) != 0
        read_all(writer, reader, data)
        profd.finish()
        return [] if meanwhile else ['the exec was held until the end']
    harness.in_turns(turn)


# If other targets were not sampled meanwhile, they had samples of one or two
# ticks only.
SAMPLES_MEANWHILE = 50


def test_others_are_sampled_meanwhile(box):
    """Other targets are sampled while capture waits two seconds for a resumed
    call of the detaching target."""
    other = box.target('shares')
    harness.in_turns(lambda: while_one_leaves(box, other))


def while_one_leaves(box, other):
    writer, reader = start_writer(box)
    profd, ctl = listening(box, [writer, other], '--rate', '1000')
    profd.wait_attached().wait_looks()

    def samples():
        return ctl.target(other.pid)['samples_taken']
    data = until_in_a_rest(writer, reader)
    ctl.run('stop', writer.pid)
    before = seen = samples()
    while True:
        last = samples()
        if harness.tracer(writer.pid) == 0:
            break
        seen = last
    read_all(writer, reader, data)
    profd.interrupt()
    return [] if seen - before >= SAMPLES_MEANWHILE else \
        [f'{seen - before} samples of the other']


def test_of_two_of_another_user(box):
    """Targets that capture may trace, but not signal. The target that stays
    does not begin anew."""
    stranger.need_root()
    left, kept = (stranger.target(box, 'threads', '3') for _ in range(2))
    profd, ctl = listening(box, [left, kept], '--debug')
    profd.wait_attached().wait_looks()
    before = ctl.target(kept.pid)['profiler_id']
    ctl.run('stop', left.pid)
    wait_for(lambda: harness.tracer(left.pid) == 0, 'one is let go')
    profd.pids.remove(left.pid)
    profd.wait_attached().wait_looks()
    check(ctl.target(kept.pid)['profiler_id'] == before, 'its profiler')
    profd.interrupt()
    check('runs a new program' not in profd.stderr, profd.stderr)


if __name__ == '__main__':
    harness.main(globals())
