"""The target's own account, and one measurement of one variant."""

import collections
import dataclasses
import json
import os
import re
import signal
import time

import harness
import variants

# Of what target.c counts in: 32 buckets an octave.
SUB_BITS = 5

# The daemon reads call frame information and finds out how deep stacks are at
# first, in its first half second; that is a cost of its start, not of a sample.
# Before a window of less than this it has as long as the window.
WARM_S = 2

# The daemon's --chunk-seconds.
CHUNK_S = 60


def bucket_us(index):
    """The middle of a bucket."""
    octave, sub = index >> SUB_BITS, index & ((1 << SUB_BITS) - 1)
    return (1 << octave) * (1 + (sub + 0.5) / (1 << SUB_BITS)) / 1000


def percentile(buckets, share):
    """Of a Counter {bucket: n}, in us; None if it is empty."""
    rest = sum(buckets.values()) * share
    for index in sorted(buckets):
        rest -= buckets[index]
        if rest <= 0:
            return bucket_us(index)
    return None


class Target:
    """tests/bench/target.c, or several of it."""

    def __init__(self, box, processes=1, **options):
        argv = [harness.BUILD / 'bench/target'] + [
            f'{k}={v}' for k, v in options.items()]
        self.busy = options.get('busy', 0)
        self.programs = [box.start(argv) for _ in range(processes)]
        for program in self.programs:
            program.wait_line(r'ready \d+')
        self.lines = 1

    def account(self):
        """The counters of the first process."""
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


def idle_seconds():
    """Of the processors that we may use, since boot."""
    idle = 0
    for cpu in os.sched_getaffinity(0):
        line = re.search(rf'^cpu{cpu} (.*)$', harness.proc_text('', 'stat'),
                         re.M)
        fields = line[1].split()
        idle += int(fields[3]) + int(fields[4])
    return idle / os.sysconf('SC_CLK_TCK')


@dataclasses.dataclass
class Window:
    """What happened between two accounts."""
    seconds: float
    rounds: int
    target_cpu_s: float
    idle_s: float
    cpu_s: float  # of the variant
    gaps: dict    # {kind: Counter}
    gap_s: dict
    waits: dict   # {kind: (n, mean in ms)}

    def speed(self, busy):
        """Rounds in a second.

        Where threads take all processors: in a second of the processor time
        that was there for the target and its profiler. Who else runs on the
        machine has no part in it then.
        """
        if busy < len(os.sched_getaffinity(0)):
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
    """A variant that ran once: a Window and a variants.Result."""
    window: Window
    result: variants.Result
    sampled_s: float
    end_s: float         # processor seconds of its end: chunk, perf script
    cost_s: float = 0.0  # processor seconds of a sample
    share: float = 0.0   # of a processor

    def set_costs(self, short=None):
        """short: a Run of less time. What its end took less is what the samples
        between them take; the rest is for names, a header, a process. A chunk
        is of CHUNK_S, which is longer than anybody waits for a benchmark; so
        is what perf records at a time, for all we know. Of that rest the
        samples of CHUNK_S have their share, and the start is left out.
        """
        w = self.window
        end_s, sampled_s = (short.end_s, short.sampled_s) if short else (0, 0)
        grows = max(self.end_s - end_s, 0) / (self.sampled_s - sampled_s)
        rest_s = self.end_s - grows * self.sampled_s
        self.share = w.cpu_s / w.seconds + grows + max(rest_s, 0) / CHUNK_S
        if self.result.samples:
            self.cost_s = self.share * self.sampled_s / self.result.samples


def measure(cls, box, target, seconds, rate):
    """Returns a Run, without its costs; raises variants.Unable."""
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
