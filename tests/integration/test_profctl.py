#!/usr/bin/python3
"""sentry-profctl stack: the stacks of programs that know their own. No daemon
runs unless a test starts one; sentry-profctl stack starts its own.
"""

import collections
import os
import re
import shutil
import signal
import subprocess

import harness
import stranger
import test_32bit
from harness import BUILD, blocked, check
from test_control import listening

# With --oracle the line has the offset in the function, otherwise the address
# in the file.
FRAME = re.compile(r'[> ] #(\d+) +0x([0-9a-f]{16})'
                   r'(?: (?!\([^()]*\)(?: guessed)?$)(.+?)(?:\+0x[0-9a-f]+)?)?'
                   r'(?: \(([^()]*?)(?:\+0x[0-9a-f]+)?\))?( guessed)?')

Frame = collections.namedtuple('Frame', 'addr name module guessed')


class Thread:
    def __init__(self, tid, name, state):
        self.tid, self.name, self.state = tid, name, state
        self.frames = []
        self.end = None
        self.missed = None
        self.oracles = []

    @property
    def names(self):
        return [f.name for f in self.frames]


def parse(text):
    """Returns {tid: Thread}. Every line must have a known form."""
    threads = {}
    thread = None
    for line in text.splitlines():
        if m := re.fullmatch(r'thread (\d+) (.*?)(?: \((\w+)\))?', line):
            thread = threads[int(m[1])] = Thread(int(m[1]), m[2], m[3])
        elif m := FRAME.fullmatch(line):
            check(int(m[1]) == len(thread.frames), f'order: {line}')
            thread.frames.append(Frame(int(m[2], 16), m[3], m[4], bool(m[5])))
        elif m := re.fullmatch(r'[> ] ended: (\w+)', line):
            thread.end = m[1]
        elif m := re.fullmatch(r'  not seen: (.*)', line):
            thread.missed = m[1]
        elif re.match(r'  > |not seen: \d+ of \d+ threads ', line):
            pass
        elif m := re.fullmatch(r'  (\w+): the same|> (\w+) differs.*', line):
            thread.oracles.append(m[1] or m[2])
        else:
            raise harness.Failure(f'what is this? {line!r}')
    return threads


def run(*args, status=0):
    done = subprocess.run([BUILD / 'sentry-profctl', *map(str, args)],
                          capture_output=True, text=True,
                          env=harness.environment(), check=False)
    wanted = status if isinstance(status, tuple) else (status,)
    check(done.returncode in wanted,
          f'{args}: status {done.returncode}: {done.stdout}{done.stderr}')
    return done


def spin(box, program):
    """Starts the program; returns when it is in its loop."""
    target = box.target(program, 'spin')
    harness.wait_work(target.pid, 0.05)
    return target


def test_a_waiting_program(box):
    for program in ('unw_o2', 'unw_fp', 'unw_o0', 'unw_static'):
        target = box.target(program, 'signal')
        expected = target.wait_line('expect (.*)')[1].split()
        harness.wait_for(lambda t=target: blocked(t.pid), 'it waits')
        threads = parse(run('stack', target.pid).stdout)
        check(list(threads) == [target.pid], f'{threads}')
        thread = threads[target.pid]
        own = [n for n in thread.names if n in expected]
        check(own == expected and thread.names[-1] == '_start',
              f'{program}: {thread.names}')
        check(thread.name == program and thread.state == 'waiting',
              f'{thread.name} {thread.state}')
        check(thread.frames[0].module in ('libc.so.6', program),
              f'{thread.frames[0]}')


def test_all_threads_and_those_that_run(box):
    target = box.target('unw_o2', 'threads')
    tids = harness.threads(target.pid)
    harness.wait_for(lambda: all(map(blocked, tids)), 'they wait')
    threads = parse(run('stack', target.pid).stdout)
    check(sorted(threads) == tids and len(tids) == 5, f'{threads} {tids}')
    leaves = sorted(n for t in threads.values() for n in t.names
                    if n and n.startswith('leaf_'))
    check(leaves == ['leaf_futex', 'leaf_nanosleep', 'leaf_poll',
                     'leaf_read'], f'{leaves}')
    spinning = spin(box, 'unw_fp')
    thread, = parse(run('stack', spinning.pid).stdout).values()
    check(thread.names[:5] == ['leaf_spin', 'third', 'second', 'first',
                               'main'] and thread.names[-1] == '_start' and
          thread.state, f'{thread.names} {thread.state}')
    check(harness.tracer(spinning.pid) == 0, 'it is still traced')
    harness.wait_work(spinning.pid, 0.05)


def switches(pid):
    return [harness.proc_status(pid, f'{kind}_ctxt_switches')
            for kind in ('voluntary', 'nonvoluntary')]


def test_whoever_waits_is_not_stopped(box):
    target = box.start(['sleep', '1000'])
    harness.wait_for(lambda: harness.exe_name(target.pid) == 'sleep' and
                     blocked(target.pid), 'it waits')
    before = switches(target.pid)
    thread, = parse(run('stack', target.pid).stdout).values()
    check('main' not in thread.names and len(thread.frames) > 3,
          f'{thread.names}')
    check(switches(target.pid) == before, 'it was stopped')
    run('stack', '--oracle', target.pid)
    check(switches(target.pid) != before, 'so does a stop show')


def test_oracles(box):
    target = box.target('unw_o2', 'threads')
    tids = harness.threads(target.pid)
    harness.wait_for(lambda: all(map(blocked, tids)), 'they wait')
    for name, expected in (('', ['libunwind']), ('=libunwind', ['libunwind']),
                           ('=dwfl', ['libdwfl']),
                           ('=all', ['libunwind', 'libdwfl'])):
        done = run('stack', f'--oracle{name}', target.pid)
        threads = parse(done.stdout)
        check(sorted(threads) == tids, f'{threads}')
        for thread in threads.values():
            check(thread.oracles == expected and thread.end == 'root',
                  f'{name}: {thread.oracles} {thread.end}')
        check('differs' not in done.stdout, done.stdout)
    # A thread that was woken must run before it waits again.
    harness.wait_for(lambda: all(map(blocked, tids)), 'they wait on')


def test_an_oracle_that_sees_less_is_marked(box):
    """libunwind cannot use a file without PT_GNU_EH_FRAME."""
    target = box.target('unw_static', 'nanosleep')
    harness.wait_for(lambda: blocked(target.pid), 'it waits')
    done = run('stack', '--oracle', target.pid, status=3)
    thread, = parse(done.stdout).values()
    check(thread.end == 'root' and 'main' in thread.names, done.stdout)
    marked = re.findall(r'^> (?:#|ended)', done.stdout, re.M)
    check(len(marked) == 1 and '> libunwind differs from #' in done.stdout,
          done.stdout)
    run('stack', '--oracle=dwfl', target.pid)


def test_a_stopped_process_stays_stopped(box):
    target = spin(box, 'unw_o2')
    target.signal(signal.SIGSTOP)
    harness.wait_for(lambda: harness.state(target.pid) == 'T', 'it stops')
    thread, = parse(run('stack', target.pid).stdout).values()
    check('leaf_spin' in thread.names, f'{thread.names}')
    harness.wait_for(lambda: harness.state(target.pid) == 'T',
                     'it is stopped again')


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


def test_names_are_shown_and_not_obeyed(box):
    path = box.dir / 'a\x1b[2J\u009bb'
    shutil.copy2(BUILD / 'targets/unw_o2', path)
    target = box.start([path, 'read'])
    target.wait_line('ready')
    text = run('stack', target.pid).stdout
    check('\x1b' not in text and '\u009b' not in text, repr(text))
    check('a\\x1b[2J\\x9bb' in text, repr(text))


def test_what_cannot_be_looked_at(box):
    gone = subprocess.Popen(['true'])
    gone.wait()
    check('no process' in run('stack', gone.pid, status=1).stderr, 'gone')
    ended = box.start(['true'])
    harness.wait_for(lambda: harness.state(ended.pid) == 'Z', 'a zombie')
    check('has ended' in run('stack', ended.pid, status=1).stderr, 'zombie')
    target = box.target('unw_o2', 'spin')
    box.profd([target]).wait_attached()
    for options in ((), ('--oracle',)):
        check('is profiled by another sentry-profd' in
              run('stack', *options, target.pid, status=1).stderr, 'traced')
    check('no process' in run('stack', '--oracle', gone.pid, status=1).stderr,
          'gone')
    for args in ((), ('stack',), ('stack', 'x'), ('stack', '0'),
                 ('stack', '1', '2'), ('stack', '--oracle=x', '1'),
                 ('stack', '--nothing', '1'), ('other',)):
        done = run(*args, status=2)
        check(done.stdout == '' and done.stderr != '', f'{args}')
    check('stack' in run('--help').stdout, 'help')
    check(run('stack', '--help').stdout.startswith('stack PID '), 'of stack')
    check('attach PID ' in run('attach', '-h').stdout, 'of the operator')


def test_without_the_oracle(box):
    """It is in a package of its own: the error names the package."""
    directory = box.make_dir('without')
    shutil.copy(BUILD / 'sentry-profctl', directory)
    done = subprocess.run([directory / 'sentry-profctl', 'stack', '--oracle', str(os.getpid())],
                          capture_output=True, text=True, check=False)
    check(done.returncode == 1 and done.stdout == '' and re.fullmatch(
        r'sentry-profctl: --oracle needs sentry-profd-oracle, which is not installed: .*package.*\n',
        done.stderr), f'{done}')


def test_of_a_32_bit_program(box):
    target = test_32bit.start(box, [test_32bit.program(box)])
    for options in ((), ('--oracle',)):
        check('32-bit program' in
              run('stack', *options, target.pid, status=1).stderr, f'{options}')


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


def test_a_signal_ends_it(box):
    """A signal also ends the daemon that it has started, and removes its
    directory."""
    runtime = box.make_dir('runtime')
    target = box.target('unw_o2', 'spin')
    for number in signal.SIGINT, signal.SIGTERM:
        command = subprocess.Popen(
            [BUILD / 'sentry-profctl', 'stack', str(target.pid)],
            stdout=subprocess.DEVNULL,
            env=harness.environment(XDG_RUNTIME_DIR=str(runtime)))
        harness.wait_for(lambda: harness.tracer(target.pid), 'it is traced')
        command.send_signal(number)
        check(command.wait() == 128 + number, f'{command.returncode}')
        check(not list(runtime.iterdir()), f'{list(runtime.iterdir())}')
        check(not harness.tracer(target.pid), 'it is let go')


if __name__ == '__main__':
    harness.main(globals())
