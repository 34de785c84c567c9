"""Compares the time that profiles tell with the time that the kernel counts: running time with
the CPU time of the processes, ready time with the run delay in schedstat, and the shares of
functions in the running time with those of `perf record -a`, in the same window.

The servers are those of servers.py. Programs in languages whose compiler is not installed are left
out.
"""

import collections
import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time
from statistics import median

import bars
import harness
import report
import servers

NAME = 'truth'
SECONDS, TIMES, WARM_S = 30, 3, 2
RATES_HZ = (101, 997)
PERF_HZ = 997
TARGETS = pathlib.Path(__file__).resolve().parents[1] / 'targets'
TICK_S = 1 / os.sysconf('SC_CLK_TCK')
LOAD_MORE_S = 12
# Where threads wait for a processor for less than this part of the time, ready time is noise.
DELAY_MIN = 0.05
# Functions below this share are not compared.
SHARE_MIN = 0.05


@dataclasses.dataclass
class Program:
    """A program of tests/targets. Its argv is made by argv(box)."""
    argv: collections.abc.Callable
    has_names: bool = True  # perf names its functions, too


def ours(name, *args):
    return Program(lambda _: [harness.BUILD / 'targets' / name, *args])


def compiled(compiler, source, output):
    def argv(box):
        program = box.make_dir('compiled') / 'program'
        subprocess.run([compiler, *output, program, TARGETS / source], check=True,
                       capture_output=True)
        return [program]
    return Program(argv)


def java(box):
    place = box.make_dir('classes')
    subprocess.run(['javac', '-d', place, TARGETS / 'Handoff.java'], check=True)
    return ['java', '-cp', place, 'Handoff']


PROGRAMS = {
    'two threads, condition variable, 1 us': ours('handoff', 'cond', 1),
    'the same, 15 us': ours('handoff', 'cond', 15),
    'the same, 150 us': ours('handoff', 'cond', 150),
    'C++ thread pool, futures': ours('pool'),
    "Rust's sync_channel(0)": compiled('rustc', 'channel.rs', ['-O', '-g', '-o']),
    "Java's SynchronousQueue": Program(java, has_names=False),
    "Python's queue.Queue": Program(lambda _: ['python3', TARGETS / 'queues.py']),
    "Go's channels": compiled('go', 'channels.go', ['build', '-o']),
    'Node.js, worker threads': Program(lambda _: ['node', TARGETS / 'workers.js'],
                                       has_names=False),
    '20 threads: 0.5 ms of work, 100 ms of sleep': ours('naps', 20, 500, 100000),
    '8 threads: 10 us of work, 1 ms of sleep': ours('naps', 8, 10, 1000),
    'the same with epoll_wait, 50 us': ours('naps', 8, 50, 1000, 'epoll'),
    '32 threads: 1 ms of work, 5 ms of sleep': ours('naps', 32, 1000, 5000),
    '1 computing thread': ours('naps', 1, 100000, 0),
    '8 computing threads': ours('naps', 8, 100000, 0),
}
SMOKE_PROGRAMS = ('two threads, condition variable, 1 us',)


@dataclasses.dataclass
class Times:
    """Sums over all threads, in seconds. run: CPU time; delay: without a processor."""
    run: float = 0
    delay: float = 0
    threads: set = dataclasses.field(default_factory=set)
    at: float = 0


def plain(function):
    """perf names some functions of libc by other symbols of the same address."""
    return re.sub(r'^(__GI_)?_*(libc_)?|@.*', '', function or '')


def times_of(pids):
    times = Times(at=time.time())
    for pid in pids:
        fields = pathlib.Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()
        times.run += (int(fields[11]) + int(fields[12])) * TICK_S
        for task in pathlib.Path(f'/proc/{pid}/task').iterdir():
            with contextlib.suppress(OSError):
                times.threads.add(task.name)
                times.delay += int((task / 'schedstat').read_text().split()[1]) / 1e9
    return times


@dataclasses.dataclass
class Told:
    """What a profile tells of a window: seconds by state, and running seconds by function."""
    states: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    functions: collections.Counter = dataclasses.field(default_factory=collections.Counter)

    def add(self, chunk, begin, end):
        profile = chunk['profile']
        for samples in bars.by_thread(profile).values():
            for s, following in zip(samples, samples[1:]):
                seconds = min(following['timestamp'], end) - max(s['timestamp'], begin)
                stack = profile['stacks'][s['stack_id']]
                if seconds <= 0 or not stack:
                    continue
                state = s.get('state', 'running')
                self.states[state] += seconds
                if state == 'running':
                    self.functions[plain(profile['frames'][stack[0]].get('function'))] += seconds


@dataclasses.dataclass
class Run:
    told: Told
    run_s: float
    delay_s: float
    seconds: float
    threads: int  # 0: they have changed
    perf: collections.Counter  # samples by function

    @property
    def told_by_kernel(self):
        return self.told.states['running'] / self.run_s

    @property
    def ready_by_delay(self):
        """None if threads hardly waited for a processor."""
        if self.delay_s < DELAY_MIN * self.seconds:
            return None
        return self.told.states['ready'] / self.delay_s

    @property
    def states_by_wall(self):
        """None if threads began or ended."""
        if not self.threads:
            return None
        return sum(self.told.states.values()) / (self.threads * self.seconds)

    def share_difference(self):
        """Returns the largest difference of a share, and the function."""
        mine, its = sum(self.told.functions.values()), sum(self.perf.values())
        if not its or not mine:
            return None
        return max((abs(self.told.functions[f] / mine - n / its), f)
                   for f, n in self.perf.items()
                   if f not in ('', '[unknown]') and n > SHARE_MIN * its)


def perf_functions(data, pids):
    """Returns the numbers of samples by the innermost function that is not the kernel's."""
    said = subprocess.run(['perf', 'script', '-i', data, '--pid', ','.join(map(str, pids)),
                           '-F', 'ip,sym'], capture_output=True, text=True).stdout
    found = collections.Counter()
    for sample in said.split('\n\n'):
        for line in sample.splitlines():
            frame = re.match(r'\s*([0-9a-f]+) (.*)', line)
            if frame and int(frame[1], 16) < 1 << 63:
                found[plain(frame[2])] += 1
                break
    return found


def sample(box, pids, rate, sampler):
    """Starts sentry-profd on the processes, and waits until it samples them."""
    daemon = box.profd(pids, '--rate', rate, '--sampler', sampler)
    if sampler == 'ptrace':
        return daemon.wait_attached()
    harness.wait_for(lambda: not daemon.running() or daemon.helpers()['capture'], 'capture')
    return daemon.wait_looks(3)


def measure_once(box, pids, rate, seconds, has_names, sampler='ptrace'):
    place = box.make_dir('truth')
    pids = {p for pid in pids for p in (pid, *harness.children(pid))}
    daemon = sample(box, pids, rate, sampler)
    time.sleep(WARM_S if seconds > WARM_S else 0)
    perf = None
    if has_names and shutil.which('perf'):
        perf = box.start(['perf', 'record', '-q', '-a', '-e', 'cpu-clock', '-F', PERF_HZ,
                          '-g', '-o', place / 'data', '--', 'sleep', seconds])
    begin = times_of(pids)
    time.sleep(seconds)
    end = times_of(pids)
    daemon.interrupt()
    told = Told()
    for chunk in daemon.chunks:
        told.add(chunk, begin.at, end.at)
    samples = collections.Counter()
    if perf:
        perf.wait()
        samples = perf_functions(place / 'data', pids)
    shutil.rmtree(daemon.output, ignore_errors=True)
    shutil.rmtree(place)
    return Run(told, end.run - begin.run, end.delay - begin.delay, end.at - begin.at,
               len(end.threads) if begin.threads == end.threads else 0, samples)


@contextlib.contextmanager
def loaded(server):
    """A load that is longer than a window: its clients, and the processes that serve them, live as
    long as it does."""
    thread = threading.Thread(target=server.load, args=(SECONDS + LOAD_MORE_S,))
    thread.start()
    try:
        time.sleep(WARM_S)
        yield
    finally:
        thread.join()


def measure_server(box, server, rate, seconds, sampler):
    with loaded(server):
        return measure_once(box, server.pids(), rate, seconds, True, sampler)


def measure(one, smoke):
    """Returns {rate, or 'perf, RATE': [Run]}; one(rate, seconds, sampler) returns a Run."""
    if smoke:
        return {RATES_HZ[0]: [one(RATES_HZ[0], 1, 'ptrace')]}
    found = {rate: [one(rate, SECONDS, 'ptrace') for _ in range(TIMES)] for rate in RATES_HZ}
    with contextlib.suppress(harness.Failure, ValueError):
        found[f'perf, {RATES_HZ[0]}'] = [one(RATES_HZ[0], SECONDS, 'perf')
                                         for _ in range(TIMES)]
    return found


def run(box, smoke=False):
    """Returns {label: {rate: [Run]}, or the reason why it was not measured}."""
    found = {}
    for label in SMOKE_PROGRAMS if smoke else PROGRAMS:
        program = PROGRAMS[label]
        try:
            target = box.start(program.argv(box))
        except FileNotFoundError as e:
            found[label] = f'no {e.filename}'
            continue
        target.wait_line('ready.*')
        found[label] = measure(
            lambda rate, seconds, sampler, t=target, p=program:
            measure_once(box, [t.pid], rate, seconds, p.has_names, sampler), smoke)
        target.end()
    for label, (cls, options, *_) in ({} if smoke else servers.LOADS).items():
        try:
            server = cls(box, options, smoke)
        except servers.Missing as e:
            found[label] = f'no {e}'
            continue
        found[label] = measure(lambda rate, seconds, sampler, s=server:
                               measure_server(box, s, rate, seconds, sampler), smoke)
        # Its workers end with it.
        server.program.signal(signal.SIGINT)
        server.program.wait()
    return found


def middle(values):
    values = [v for v in values if v is not None]
    return median(values) if values else None


def shown(values, digits=2):
    values = [v for v in values if v is not None]
    if not values:
        return ''
    return (f'{median(values):.{digits}f} '
            f'({min(values):.{digits}f} to {max(values):.{digits}f})')


def wanted(found):
    """Returns requirements as report.requirements()."""
    rows = []
    for label, rates in found.items():
        for rate, runs in rates.items() if isinstance(rates, dict) else ():
            told = [r.told_by_kernel for r in runs]
            ready = [r.ready_by_delay for r in runs]
            rows.append((f'true: {label}, {rate} Hz, running', '0.95 to 1.05 of the kernel',
                         shown(told), .95 <= median(told) <= 1.05))
            states = [r.states_by_wall for r in runs]
            if middle(states) is not None:
                rows.append((f'true: {label}, {rate} Hz, all states',
                             '0.995 to 1.005 of threads x time', shown(states, 3),
                             .995 <= middle(states) <= 1.005))
            if middle(ready) is not None:
                rows.append((f'true: {label}, {rate} Hz, ready', '0.9 to 1.1 of the run delay',
                             shown(ready), .9 <= middle(ready) <= 1.1))
    return rows


def text(found):
    rows = []
    for label, rates in found.items():
        if not isinstance(rates, dict):
            rows.append([label, f'not measured: {rates}', '', '', '', ''])
            continue
        for rate, runs in rates.items():
            differences = [d for d in (r.share_difference() for r in runs) if d]
            share = ''
            if differences:
                points, function = sorted(differences)[len(differences) // 2]
                share = f'{100 * points:.0f} ({function})'
            rows.append([label, str(rate), shown([r.told_by_kernel for r in runs]),
                         shown([r.ready_by_delay for r in runs]),
                         shown([r.states_by_wall for r in runs], 3), share])
    return (f'### True times (`T={NAME}`)\n\n'
            f'{TIMES} windows of {SECONDS} s: medians, and in brackets the least and the most. '
            'Running: the running time of the profile, as a part of the CPU time that the kernel '
            'counts. Ready: the ready time, as a part of the run delay, where that is more than '
            f'{DELAY_MIN:.0%} of the time. All: running, ready and waiting time, as a part of the '
            'time of all threads, where none has begun or ended. The last column is the largest difference between '
            "a function's share of the running time and its share of the samples of "
            f'`perf record -a -e cpu-clock -F {PERF_HZ}`, in points, of functions with more than '
            f'{SHARE_MIN:.0%}.\n\n' +
            report.table(['program', 'Hz', 'running', 'ready', 'all', 'largest difference'], rows))
