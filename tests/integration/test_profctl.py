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
import test_32bit
from harness import BUILD, blocked, check

# With --oracle the line has the offset in the function, otherwise the address
# in the file.
FRAME = re.compile(r'[> ] #(\d+) +0x([0-9a-f]{16})'
                   r'(?: (?!\([^()]*\)(?: guessed)?$)(.+?)(?:\+0x[0-9a-f]+)?)?'
                   r'(?: \(([^()]*?)(?:\+0x[0-9a-f]+)?\))?( guessed)?(?: at .+)?')

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


def test_stacks_that_cannot_be_written(box):
    target = spin(box, 'unw_o2')
    done = subprocess.run(['sh', '-c', 'exec "$@" > /dev/full', 'sh', BUILD / 'sentry-profctl',
                           'stack', str(target.pid)], capture_output=True, text=True,
                          env=harness.environment(), check=False)
    check(done.returncode == 1, f'{done.returncode}')
    check('cannot write to standard output: No space left on device' in done.stderr, done.stderr)


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
