"""The profilers that are compared (variants), with one interface.

    v = Variant(box, targets, rate)     targets are harness.Programs
    v.start()       returns when the profiler samples; raises Unable if it cannot run
    v.cpu()         CPU time of its processes until now, in s
    v.stop()        ends the profiler; returns a Result
"""

import dataclasses
import json
import re
import resource
import shutil
import signal
import time

import harness

ATTACH_S = 20
# perf script may take many times as long as the recording.
SCRIPT_S = 60


class Unable(Exception):
    """The variant cannot run on this machine, or did not end in time. The text says why."""


@dataclasses.dataclass
class Result:
    samples: int            # those that cost something: with a stop or an interrupt
    complete: float = None  # the share of the expected samples that were taken
    cpu_s: float = 0.0      # CPU time from the start to the end
    rss_bytes: int = None
    stop_us: dict = None    # lengths of stops by its own clock
    frames: float = None
    sampled_s: float = None
    missed: dict = dataclasses.field(default_factory=dict)  # {reason: share}
    warnings: list = dataclasses.field(default_factory=list)


def task_seconds(pid):
    """Returns the CPU time of the living threads, in steps of a nanosecond."""
    total = 0
    for tid in harness.threads(pid):
        fields = harness.proc_text(pid, f'task/{tid}/schedstat').split()
        total += int(fields[0]) if fields else 0
    return total / 1e9


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Variant:
    # True if its end costs CPU time even without samples.
    has_end = False

    def __init__(self, box, targets, rate):
        self.box, self.targets, self.rate = box, targets, rate
        self.pid = targets[0].pid

    def cpu(self):
        return task_seconds(self.program.pid)

    def end(self, number, timeout=harness.PATIENCE_S):
        """Ends the program. Returns its CPU time, in s, with that of its children."""
        before = children_seconds()
        self.program.signal(number)
        self.program.wait(timeout)
        return children_seconds() - before


class Nothing(Variant):
    name = 'nothing'

    def start(self):
        pass

    def cpu(self):
        return 0.0

    def stop(self):
        return Result(samples=0)


class Ours(Variant):
    name = 'sentry-profd'
    has_end = True
    options = ()

    def start(self):
        self.program = self.box.profd(self.targets, '--rate', self.rate,
                                      '--release', 'bench', *self.options)
        self.wait()

    def wait(self):
        self.program.wait_attached()

    def cpu(self):
        pids = [self.program.pid] + [
            pid for pids in self.program.helpers().values() for pid in pids]
        return sum(task_seconds(pid) for pid in pids)

    def stop(self):
        self.program.interrupt()
        stats = self.program.stats
        shutil.rmtree(self.program.output, ignore_errors=True)
        return Result(
            samples=stats['captured'],
            complete=stats['samples_taken'] / stats['samples_expected'],
            cpu_s=sum(stats['cpu_seconds'].values()),
            rss_bytes=sum(stats['rss_peak_bytes'].values()),
            missed={reason: n / stats['samples_expected']
                    for reason, n in stats['missed'].items() if n},
            warnings=sorted({re.sub(r'\d+', 'N', line) for line in re.findall(
                'warning: (.*)', self.program.stderr)}),
            stop_us=stats['stop_us'], sampled_s=stats['duration_s'])


class OursPerf(Ours):
    name = 'sentry-profd, perf'
    options = '--sampler', 'perf'

    def wait(self):
        """Nothing is traced: it has begun when it looks at the targets."""
        harness.wait_for(lambda: not self.program.running() or
                         self.program.helpers()['capture'], 'capture')
        if not self.program.running():
            raise Unable(self.program.stderr.splitlines()[-1])
        self.program.wait_looks(3)


class Tracer(Variant):
    """A tracer of tests/bench."""
    way = ()  # further arguments

    def start(self):
        self.program = self.box.start(
            [harness.BUILD / 'bench' / self.exe, self.pid, self.rate, *self.way])
        try:
            self.program.wait_line('attached')
        except harness.Failure as e:
            raise Unable(str(e).splitlines()[0]) from None

    def stop(self):
        self.program.signal(signal.SIGTERM)
        self.program.wait()
        said = json.loads(self.program.wait_line(r'\{.*\}')[0])
        return Result(
            samples=said['stops'],
            complete=(said['stops'] + said['filled']) /
            max(said['expected'], 1),
            cpu_s=said['cpu_ns'] / 1e9,
            sampled_s=said['ticks'] / self.rate,
            frames=said['frames'] / max(said['stops'], 1) or None)


class Bare(Tracer):
    name = exe = 'bare'


class Naive(Tracer):
    name = exe = 'naive'


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else 'no word'


def start_perf(box, pids, rate):
    """Starts perf record, with stacks that DWARF CFI can unwind. Returns the program and
    the path of its data once it records; raises Unable."""
    if not shutil.which('perf'):
        raise Unable('perf is not installed')
    data = box.make_dir('perf') / 'data'
    program = box.start(['perf', 'record', '-e', 'cpu-clock', '-F', rate, '--call-graph',
                         'dwarf', '-o', data, '-p', ','.join(map(str, pids))])
    deadline = time.monotonic() + ATTACH_S
    while not (data.exists() and data.stat().st_size > 0):
        if not program.running() or time.monotonic() > deadline:
            raise Unable(last_line(program.stderr))
        time.sleep(harness.POLL_S)
    return program, data


class Perf(Variant):
    """perf record, and the perf script that unwinds the samples. Samples running threads
    only."""
    name = 'perf'
    has_end = True

    def start(self):
        self.program, self.data = start_perf(self.box, [self.pid], self.rate)

    def stop(self):
        cpu_s = self.end(signal.SIGINT)
        if not self.data.exists():
            raise Unable(last_line(self.program.stderr))
        # Without inlined functions, which sentry-profd does not show by default. For
        # these perf runs addr2line at each address.
        before = children_seconds()
        script = self.box.start(['perf', 'script', '-i', self.data,
                                 '--no-inline', '-F', 'comm,tid,time,ip,sym'])
        try:
            script.wait(SCRIPT_S)
        except harness.Failure:
            raise Unable(f'perf script takes over {SCRIPT_S} s') from None
        blocks = [b for b in script.stdout.split('\n\n') if b.strip()]
        self.data.unlink()
        script.out_path.unlink()
        if not blocks:
            raise Unable('perf script prints nothing')
        return Result(samples=len(blocks),
                      frames=sum(b.count('\n') for b in blocks) / len(blocks),
                      cpu_s=cpu_s + children_seconds() - before)


class Bpftrace(Variant):
    """bpftrace aggregates in the kernel. It unwinds by frame pointers, so stacks of
    programs without frame pointers are cut."""
    name = 'bpftrace'

    def start(self):
        if not shutil.which('bpftrace'):
            raise Unable('bpftrace is not installed')
        probe = (f'profile:hz:{self.rate} /pid == {self.pid}/ '
                 '{ @[ustack] = count(); }')
        self.program = self.box.start(['bpftrace', '-e', probe])
        try:
            self.program.wait_line('Attaching.*')
        except harness.Failure:
            raise Unable(last_line(self.program.stderr)) from None

    def stop(self):
        cpu_s = self.end(signal.SIGINT)
        said = self.program.stdout
        stacks = re.findall(r'@\[([^]]*)\]: (\d+)', said)
        samples = sum(int(n) for _, n in stacks)
        if samples == 0:
            raise Unable('no sample: ' + last_line(self.program.stderr))
        frames = sum(len(s.split('\n')) - 2 + (s.count('\n') == 0)
                     for s, n in stacks for _ in range(int(n)))
        return Result(samples=samples, cpu_s=cpu_s, frames=frames / samples)


ALL = (Nothing, Bare, Ours, Naive, Perf, Bpftrace)
