#!/usr/bin/python3
"""Sends SIGKILL to each of the five processes of sentry-profd, KILLS (1,000) times each, at
random moments, while several daemons profile programs that make threads, children and
signals, and load code, all the time.

In one life of a daemon each of its children is killed once, in any order, and is replaced.
Then the broker is killed, and all other processes end. After each kill the test checks that
all threads of the profiled programs run on; after that of the broker also that no thread is
traced, and that programs which were stopped before are stopped. At the end no program may
have found a fault.

Prints a line a minute; the last line is JSON.
"""

import collections
import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'integration'))

import harness
import life
from harness import Failure, check, wait_for
from progress import Progress

KILLS = int(os.environ.get('KILLS') or 1000)
SEED = os.environ.get('SEED') or str(random.randrange(10**6))
WORKERS = 3
RATE = 1000

# More rounds than any run makes.
ENDLESS = 10**8

# The time in which the other processes must end after the broker. It is long because three
# daemons and their targets share the processors.
GONE_S = 20

# The helper that opens files exists only while there are files to open.
FILES_S = 3

CHILDREN = ('capture', 'unwind', 'files', 'ship')
KINDS = CHILDREN + ('broker',)


def says_nothing_wrong(program):
    check(program.running(), f'{program.name} has ended: {program.report()}')
    check('wrong' not in program.stderr, f'{program.report()}')


class Load:
    """The programs that one daemon profiles: one whose threads count their progress, one
    that is stopped, one that loads and unloads code, and one that checks its own calls."""

    def __init__(self, box, worker):
        self.progress = Progress(box)
        self.stopped = box.target('shares')
        self.plugins = box.target('plugins')
        self.checking = life.start(box, *(
            ('life_family', ENDLESS),
            ('life_signals', SEED, ENDLESS),
            ('life_storm', 200, ENDLESS // 200))[worker])
        life.begin(self.checking)
        self.stopped.signal(signal.SIGSTOP)
        wait_for(lambda: harness.state(self.stopped.pid) == 'T', 'its stop')

    def targets(self):
        return [self.progress.program, self.stopped, self.plugins,
                self.checking]

    def check_going_on(self):
        self.progress.check_going_on()
        says_nothing_wrong(self.checking)
        check(self.plugins.running(), self.plugins.report())

    def check_untouched(self):
        self.progress.check_untouched()
        # Short-lived threads and children may have ended.
        for target in self.targets():
            for tid in harness.threads(target.pid):
                wait_for(lambda t=tid: harness.tracer(t) == 0,
                         f'thread {tid} of {target.name} is let go')
        # Between the ptrace-stop and its own stop the thread wakes in the kernel.
        wait_for(lambda: harness.state(self.stopped.pid) == 'T',
                 'what was stopped is stopped')
        for target in (self.plugins, self.checking):
            wait_for(lambda t=target: harness.state(t.pid) not in 'tT',
                     f'{target.name} is not stopped')

    def check_end(self):
        """Ends the programs, and checks that they have found no fault."""
        self.stopped.signal(signal.SIGCONT)
        wait_for(lambda: harness.state(self.stopped.pid) not in 'tT',
                 'it is continued')
        self.plugins.signal(signal.SIGUSR1)
        check(self.plugins.wait() == 0, self.plugins.report())
        self.check_progress()

    def check_progress(self):
        self.progress.check_going_on()
        says_nothing_wrong(self.checking)


def pids_of(profd, kind):
    return [profd.pid] if kind == 'broker' else profd.children_of(kind)


def kill_one(profd, kind):
    """Kills a process of this kind. Returns its pid; 0: there was none in FILES_S."""
    def found():
        check(profd.running(), f'the broker has ended: {profd.report()}')
        return pids_of(profd, kind)
    try:
        pids = wait_for(found, kind, FILES_S if kind == 'files' else
                        harness.PATIENCE_S)
    except Failure:
        if kind != 'files':
            raise
        return 0
    with contextlib.suppress(ProcessLookupError):
        os.kill(pids[0], signal.SIGKILL)
        return pids[0]
    return 0


def reap(load):
    """Reaps orphans of the daemons, but no target."""
    targets = {t.pid for t in load.targets()}
    for tid in harness.threads(os.getpid()):
        text = harness.proc_text(os.getpid(), f'task/{tid}/children')
        for pid in set(map(int, text.split())) - targets:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def check_all_gone(profd, load):
    """Checks that no process of sentry-profd is left."""
    def left():
        reap(load)
        return [f'{harness.exe_name(p)} ({p}, {harness.state(p)})'
                for p in harness.children(os.getpid())
                if harness.exe_name(p).startswith('sentry-profd')]
    try:
        wait_for(lambda: not left(), '', GONE_S)
    except Failure:
        raise Failure(f'still there {GONE_S} s after the broker: {left()}') \
            from None


def one_life(box, load, rng, counts):
    profd = box.profd(load.targets(), '--rate', rng.choice((101, RATE)),
                      '--chunk-seconds', '1')
    if rng.random() < 0.7:
        profd.wait_attached()
    else:
        time.sleep(rng.uniform(0, 0.1))
    order = list(CHILDREN)
    rng.shuffle(order)
    for kind in order:
        time.sleep(rng.uniform(0, 0.15))
        killed = kill_one(profd, kind)
        counts[kind] += killed != 0
        if rng.random() < 0.3:
            load.check_going_on()
        if kind != 'files' and rng.random() < 0.5:
            wait_for(lambda k=kind, p=killed: set(pids_of(profd, k)) - {p},
                     f'{kind} is replaced')
    if rng.random() < 0.1:
        # The next SIGKILL then comes while the daemon ends.
        profd.signal(signal.SIGINT)
    time.sleep(rng.uniform(0, 0.1))
    if profd.running():
        profd.signal(signal.SIGKILL)
        counts['broker'] += 1
    profd.wait()
    check_all_gone(profd, load)
    load.check_untouched()
    load.check_going_on()
    box.programs.remove(profd)


def run_worker(box, worker):
    counts = collections.Counter({kind: 0 for kind in KINDS})
    rng = random.Random(f'{SEED} {worker}')
    load = Load(box, worker)
    goal = -(-KILLS // WORKERS)
    lives = 0
    told = time.monotonic()
    try:
        while min(counts.values()) < goal:
            one_life(box, load, rng, counts)
            lives += 1
            check(lives < 2 * goal + 10, f'kills that do not happen: {counts}')
            if time.monotonic() - told > 60:
                told = time.monotonic()
                print(f'  daemon {worker}: {counts["broker"]} of {goal} lives',
                      flush=True)
        load.check_end()
    except Failure as e:
        raise Failure(f'{e} (SEED={SEED}, after {counts})') from e
    print(json.dumps(counts), flush=True)


def test_worker(box):
    run_worker(box, int(os.environ['WORKER']))


def run_all():
    """Runs three workers at the same time, so that their daemons are load for each
    other."""
    print(f'SEED={SEED}', flush=True)
    # One pipe for all workers, so that each line is shown at once.
    reader, writer = os.pipe()
    workers = [subprocess.Popen(
        [sys.executable, __file__], stdout=writer,
        env=dict(os.environ, SEED=SEED, WORKER=str(n)))
        for n in range(WORKERS)]
    os.close(writer)
    counts = collections.Counter()
    with open(reader, encoding='utf-8') as lines:
        for line in lines:
            if line.startswith('{'):
                counts.update(json.loads(line))
            else:
                print(line, end='', flush=True)
    failed = [w for w in workers if w.wait() != 0]
    print(json.dumps(counts), flush=True)
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    if 'WORKER' in os.environ:
        harness.main(globals())
    else:
        run_all()
