"""Measures one variant once, by the counters that the target prints."""

import collections
import dataclasses
import json
import os
import re
import signal
import time

import harness
import variants

# As GAP_SUB_BITS in target.h: 32 buckets per octave.
SUB_BITS = 5

# Time before the window of a measurement, or the length of the window if that is shorter.
# In its first half second the daemon reads call frame information and learns how deep
# stacks are, which is a cost of its start, not of a sample.
WARM_S = 2

# The default of --chunk-seconds.
CHUNK_S = 60


def bucket_us(index):
    """Returns the middle of a bucket, in us."""
    octave, sub = index >> SUB_BITS, index & ((1 << SUB_BITS) - 1)
    return (1 << octave) * (1 + (sub + 0.5) / (1 << SUB_BITS)) / 1000


def percentile(buckets, share):
    """Returns a percentile of a Counter {bucket: n}, in us; None if it is empty."""
    rest = sum(buckets.values()) * share
    for index in sorted(buckets):
        rest -= buckets[index]
        if rest <= 0:
            return bucket_us(index)
    return None


class Target:
    """One or several processes of tests/bench/target.c."""

    def __init__(self, box, processes=1, **options):
        argv = [harness.BUILD / 'bench/target'] + [
            f'{k}={v}' for k, v in options.items()]
        self.busy = options.get('busy', 0)
        self.programs = [box.start(argv) for _ in range(processes)]
        for program in self.programs:
            program.wait_line(r'ready \d+')
        self.lines = 1

    def account(self):
        """Returns the counters of the first process."""
        program = self.programs[0]
        program.signal(signal.SIGUSR1)
        harness.wait_for(
            lambda: program.stdout.count('\n') > self.lines or
            not program.running(), 'the target prints its account')
        self.lines += 1
        return json.loads(program.stdout.splitlines()[-1])

    def end(self):
        for program in self.programs:
            program.end()


def processors():
    """Returns the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


def idle_seconds():
    """Returns the idle time since boot of the processors that this process may use."""
    idle = 0
    for cpu in os.sched_getaffinity(0):
        line = re.search(rf'^cpu{cpu} (.*)$', harness.proc_text('', 'stat'),
                         re.M)
        fields = line[1].split()
        idle += int(fields[3]) + int(fields[4])
    return idle / os.sysconf('SC_CLK_TCK')


@dataclasses.dataclass
class Window:
    """The differences between two accounts of the target."""
    seconds: float
    rounds: int
    target_cpu_s: float
    idle_s: float
    cpu_s: float  # of the variant
    gaps: dict    # {kind: Counter}
    gap_s: dict
    waits: dict   # {kind: (n, mean in ms)}

    def speed(self, busy):
        """Returns the rounds per second.

        If the threads take all processors: per second of the processor time that the
        machine left to the target and the profiler. So other programs have no
        influence.
        """
        if busy < processors():
            return self.rounds / self.seconds
        return self.rounds / (self.target_cpu_s + self.cpu_s + self.idle_s)


def window(target, variant, seconds):
    before, idle, cpu = target.account(), idle_seconds(), variant.cpu()
    time.sleep(seconds)
    cpu = variant.cpu() - cpu
    idle, after = idle_seconds() - idle, target.account()
    gaps, gap_s, waits = {}, {}, {}
    for kind in ('stop', 'stop_net', 'preempted', 'other'):
        gaps[kind] = collections.Counter(
            {int(b): n for b, n in after[kind]['buckets'].items()})
        gaps[kind].subtract(
            {int(b): n for b, n in before[kind]['buckets'].items()})
        gap_s[kind] = (after[kind]['ns'] - before[kind]['ns']) / 1e9
    for kind in ('epoll_wait', 'nanosleep', 'poll'):
        n = after[kind]['n'] - before[kind]['n']
        ns = after[kind]['ns'] - before[kind]['ns']
        waits[kind] = (n, ns / n / 1e6) if n else (0, None)
    return Window(
        seconds=(after['time_ns'] - before['time_ns']) / 1e9,
        rounds=after['rounds'] - before['rounds'],
        target_cpu_s=(after['cpu_ns'] - before['cpu_ns']) / 1e9,
        idle_s=idle, cpu_s=cpu, gaps=gaps, gap_s=gap_s, waits=waits)


@dataclasses.dataclass
class Run:
    """One run of a variant."""
    window: Window
    result: variants.Result
    sampled_s: float
    end_s: float         # CPU time of its end: the chunk, or perf script
    cost_s: float = 0.0  # CPU time per sample
    share: float = 0.0   # CPU time per second

    def set_costs(self, short=None):
        """Sets cost_s and share, which include the end but not the start.

        short is a Run of less time. The difference between the ends of both runs is
        the cost of the samples in between. The rest (names, a header, the start of a
        process) is the same however long a run is. It occurs once per chunk, so it is
        spread over CHUNK_S, which is longer than the runs of the benchmark.
        """
        w = self.window
        end_s, sampled_s = (short.end_s, short.sampled_s) if short else (0, 0)
        grows = max(self.end_s - end_s, 0) / (self.sampled_s - sampled_s)
        rest_s = self.end_s - grows * self.sampled_s
        self.share = w.cpu_s / w.seconds + grows + max(rest_s, 0) / CHUNK_S
        if self.result.samples:
            self.cost_s = self.share * self.sampled_s / self.result.samples


def measure(cls, box, target, seconds, rate):
    """Returns a Run, whose costs are not set. Raises variants.Unable."""
    variant = cls(box, target.programs, rate)
    variant.start()
    start = time.monotonic()
    if cls is not variants.Nothing:
        time.sleep(min(seconds, WARM_S))
    w = window(target, variant, seconds)
    until_end = variant.cpu()
    sampled_s = time.monotonic() - start
    result = variant.stop()
    return Run(window=w, result=result,
               sampled_s=result.sampled_s or sampled_s,
               end_s=max(result.cpu_s - until_end, 0))
