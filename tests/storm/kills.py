"""Kills: SIGKILL to each process of sentry-profd, at random moments, while it profiles
programs that make threads, children and signals, and load code, all the time.

In one life of a daemon each of its children is killed once, in any order, and is
replaced. Then the daemon is told to end, and its statistics must agree with the kills;
or the broker is killed, and all other processes end. After a kill all threads of the
programs run on. After the end of the daemon no thread is traced, and what was stopped
before is stopped. No program may find a fault.
"""

import collections
import contextlib
import os
import signal
import time

import harness
import life
from account import check_sums
from harness import Envelope, Failure, check, wait_for
from progress import Progress

SHORT_S = 4

CHILDREN = ('capture', 'unwind', 'ship', 'files')
RATES = (101, 1000)
BUSY = 4
# More rounds than any run makes.
ENDLESS = 10**8
# The helper that opens files exists only while there are files to open.
FILES_S = 3


class Load:
    """The programs: one whose threads count their progress, one that is stopped, one
    that loads and unloads code, and some that check their own calls."""

    def __init__(self, box, rng):
        self.progress = Progress(box, BUSY)
        self.stopped = box.target('shares')
        self.plugins = box.target('plugins')
        self.checking = [
            life.start(box, 'life_family', ENDLESS),
            life.start(box, 'life_signals', rng.randrange(10**6), ENDLESS),
            life.start(box, 'life_storm', 200, ENDLESS // 200)]
        for program in self.checking:
            life.begin(program)
        self.stopped.signal(signal.SIGSTOP)
        wait_for(lambda: harness.state(self.stopped.pid) == 'T', 'its stop')

    def targets(self):
        return [self.progress.program, self.stopped, self.plugins, *self.checking]

    def check_no_fault(self):
        for program in self.targets():
            check(program.running() and 'wrong' not in program.stderr,
                  f'{program.name}: {program.report()}')

    def check_going_on(self):
        self.check_no_fault()
        self.progress.check_going_on()

    def check_untouched(self):
        for program in self.targets():
            # Short-lived threads and children may have ended.
            for tid in harness.threads(program.pid):
                wait_for(lambda t=tid: harness.tracer(t) == 0,
                         f'thread {tid} of {program.name} is let go')
        # Between the ptrace-stop and its own stop the thread wakes in the kernel.
        wait_for(lambda: harness.state(self.stopped.pid) == 'T',
                 'what was stopped is stopped')
        self.progress.check_untouched()
        for program in (self.plugins, *self.checking):
            wait_for(lambda p=program: harness.state(p.pid) not in 'tT',
                     f'{program.name} is not stopped')

    def check_end(self):
        self.stopped.signal(signal.SIGCONT)
        wait_for(lambda: harness.state(self.stopped.pid) not in 'tT', 'it is continued')
        self.plugins.signal(signal.SIGUSR1)
        check(self.plugins.wait() == 0, self.plugins.report())


class Storm:
    def __init__(self, box, rng):
        self.box, self.rng = box, rng
        self.load = Load(box, rng)
        self.figures = collections.Counter()

    def kill(self, kind):
        """Kills a child of this kind. Returns its pid; 0: it was gone, or there was
        none that opens files."""
        def found():
            self.load.check_no_fault()
            check(self.profd.running(), f'the broker has ended: {self.profd.report()}')
            return self.profd.children_of(kind)
        try:
            pids = wait_for(found, kind, FILES_S if kind == 'files' else
                            harness.PATIENCE_S)
        except Failure:
            if kind != 'files':
                raise
            return 0
        with contextlib.suppress(ProcessLookupError):
            os.kill(pids[0], signal.SIGKILL)
            self.figures[f'kills of {kind}'] += 1
            return pids[0]
        return 0

    def kill_children(self):
        for kind in self.rng.sample(CHILDREN, len(CHILDREN)):
            time.sleep(self.rng.uniform(0, 0.3))
            killed = self.kill(kind)
            if self.rng.random() < 0.3:
                self.load.check_going_on()
            if kind != 'files' and self.rng.random() < 0.5:
                wait_for(lambda k=kind, p=killed: set(self.profd.children_of(k)) - {p},
                         f'{kind} is replaced')

    def end_by_kill(self):
        """Kills the broker, perhaps while the daemon ends."""
        if self.rng.random() < 0.1:
            self.profd.signal(signal.SIGINT)
        time.sleep(self.rng.uniform(0, 0.1))
        if self.profd.running():
            self.profd.signal(signal.SIGKILL)
            self.figures['kills of the broker'] += 1
        self.profd.wait()

    def end_in_order(self):
        # If no ship has ever worked, the daemon rightly gives up.
        self.wait_samples(time.time())
        self.profd.interrupt()
        stats = self.profd.stats
        chunks = check_sums(stats, arrived='written')
        check(chunks['written'] == len(self.profd.envelopes),
              f'{len(self.profd.envelopes)} files: {chunks}')
        check(chunks['discarded'].get('unwind_died', 0) > 0,
              f'unwind was killed, and no chunk was lost: {chunks}')
        self.figures['ends in order'] += 1
        self.figures['samples taken'] += stats['samples_taken']

    def wait_samples(self, since):
        """Waits until each busy thread has a sample of a later time in a file."""
        busy = [str(t) for t in harness.threads(self.load.progress.pid)
                if harness.proc_status(t, 'Name').startswith('busy')]
        check(len(busy) == BUSY, f'{len(busy)} busy threads')
        seen, sampled = set(), set()

        def all_sampled():
            for path in set(self.profd.output.glob('*.envelope')) - seen:
                seen.add(path)
                chunk = Envelope(path.read_bytes(), path.name).chunk
                sampled.update(s['thread_id'] for s in chunk['profile']['samples']
                               if s['timestamp'] > since)
            return sampled.issuperset(busy)
        wait_for(all_sampled, 'samples after the last replacement')

    def check_all_gone(self):
        mine = {p.pid for p in self.box.programs}

        def left():
            """Reaps orphans of the daemon; returns those that run."""
            for tid in harness.threads(os.getpid()):
                text = harness.proc_text(os.getpid(), f'task/{tid}/children')
                for pid in set(map(int, text.split())) - mine:
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(pid, os.WNOHANG)
            return [f'{harness.exe_name(p)} ({p}, {harness.state(p)})'
                    for p in harness.children(os.getpid()) if p not in mine]
        try:
            wait_for(lambda: not left(), '')
        except Failure:
            raise Failure(f'still there after the broker: {left()}') from None

    def one_life(self):
        self.profd = self.box.profd(
            self.load.targets(), '--rate', self.rng.choice(RATES), '--chunk-seconds', '1',
            # life_signals handles crash signals in ordinary work.
            '--on-crash', 'stay')
        is_killed = self.rng.random() < 0.5
        if is_killed and self.rng.random() < 0.5:
            time.sleep(self.rng.uniform(0, 0.1))
        else:
            self.profd.wait_attached()
        self.kill_children()
        if is_killed:
            self.end_by_kill()
        else:
            self.end_in_order()
        self.check_all_gone()
        self.load.check_untouched()
        self.load.check_going_on()
        self.box.programs.remove(self.profd)
        self.figures['lives'] += 1


def run(box, seconds, rng):
    storm = Storm(box, rng)
    end = time.monotonic() + seconds
    try:
        while storm.figures['lives'] < 2 or time.monotonic() < end:
            storm.one_life()
        storm.load.check_end()
    except Failure as e:
        raise Failure(f'{e}; after {dict(storm.figures)}') from e
    return storm.figures
