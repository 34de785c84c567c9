"""A life of the daemon in the storm faults: its start, all that it does for the
two processes that it profiles, its end, and the checks. A part of that storm.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time

import control
import harness
import stranger
from account import check_sums
from harness import BUILD, PATIENCE_S, Envelope, Failure, Skip, check
from upkeep import replace_config

# A step that the fault may make impossible is given up after this.
STEP_S = 10

# The statuses of a daemon that has ended by an error, or has lost all chunks;
# 127 is that of the dynamic linker.
STATUSES = (0, 1, 2, harness.ALL_LOST, 127)

# Of tests/targets/faults.c.
UNABLE = 77

# A child that is started again, because it has ended or was ended.
AGAIN = re.compile(r'sentry-profd-(\w+) .*: '
                   '(?:starting it again|it is replaced)')
# Fewer ticks say little of the samples.
TICKS_MIN = 100
# No child does, so the daemon must not say that one does.
BLAME = 'breaks the rules'
# SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV.
CRASH = re.compile(r'.* was ended by signal (?:4|6|7|8|11)\b.*')

CHILDREN = {'capture', 'unwind', 'ship'}

CONFIG = '''[sentry]
dsn = {dsn}
[profiler]
chunk_seconds = 1
'''
SECTION = '''[target "{name}"]
exe = {exe}
autostart = yes
profile_session_sample_rate = 1
min_age_seconds = 0
release = {name}@{release}
'''


class Life:
    """exe: the daemon. is_spooled: the server of this DSN is down, so chunks go
    into the spool."""

    def __init__(self, box, name, exe, dsn, is_spooled):
        self.box, self.name, self.exe, self.dsn = box, name, exe, dsn
        self.is_spooled = is_spooled
        self.dir = box.make_dir('life')
        self.dir.chmod(0o755)
        self.output = self.dir / 'output'
        self.spool = self.dir / 'spool'
        self.programs = []
        self.profd = None
        self.began = time.monotonic()
        self.signals = 0
        self.found, self.seen = 0, set()
        self.outcome = ''

    # Subclasses override these.

    # The step after begin() is given up after this.
    strained_s = STEP_S
    # A process may die by a signal of its own.
    may_crash = False
    # The fault costs no samples.
    is_whole = False
    # The children that the fault may end.
    may_restart = CHILDREN

    def wrapper(self):
        """Returns a command that executes the daemon."""
        return ()

    def prepare(self):
        """Called before the start of the daemon."""

    def begin(self):
        """Called when both processes are profiled. A lack begins."""

    def failed(self):
        """Returns true if the fault has happened."""
        return False

    def relieve(self):
        """Ends a lack. May be called again."""

    def killed(self):
        """Returns the pids of profiled processes that the fault has killed."""
        return ()

    def statuses(self):
        """Returns the exit statuses that the daemon may have."""
        return STATUSES

    # The processes.

    def copy(self, name):
        path = self.dir / f'{name}-{self.dir.name}'
        shutil.copy(BUILD / 'targets' / name, path)
        path.chmod(0o755)
        return path

    def start(self, argv, **options):
        program = self.box.start(argv, **options)
        self.programs.append(program)
        return program

    def write_config(self, release):
        text = CONFIG.format(dsn=self.dsn)
        for name, exe in self.exes.items():
            text += SECTION.format(name=name, exe=exe, release=release)
        replace_config(self.config, text)

    def start_all(self):
        self.exes = {'unharmed': self.copy('unharmed'),
                     'changing': self.copy('exec_again')}
        self.unharmed = self.start(
            [self.exes['unharmed']], stdin=subprocess.PIPE,
            **stranger.options())
        self.changing = self.start([self.exes['changing'], '1'])
        for program in (self.unharmed, self.changing):
            program.wait_line('ready.*')
        self.tids = harness.threads(self.unharmed.pid)
        self.config = self.dir / 'profd.conf'
        self.write_config(1)
        for path in (self.output, self.spool):
            path.mkdir()
        self.prepare()
        self.socket = self.dir / 'socket'
        self.profd = self.box.profd(
            [], '--config', self.config, '--socket', self.socket, '--spool',
            self.spool if self.is_spooled else 'none', '--shutdown-timeout',
            '5', exe=self.exe, output=self.output, directory=self.dir,
            wrapper=self.wrapper())
        self.programs.append(self.profd)

    # The state of the life.

    def is_profiled(self, program):
        tids = harness.threads(program.pid)
        capture = self.profd.helpers()['capture']
        return bool(tids) and all(harness.tracer(t) in capture for t in tids)

    def chunks(self):
        """The number of chunks with samples of the unharmed process."""
        for path in self.output.glob('*.envelope'):
            if path.name in self.seen:
                continue
            # A file that is being written is looked at again.
            with contextlib.suppress(OSError, ValueError):
                chunk = Envelope(path.read_bytes(), path.name).chunk
                self.seen.add(path.name)
                self.found += chunk['release'].startswith('unharmed') and \
                    chunk['profile']['samples'] != []
        return self.found

    def is_explained(self):
        """A line says why the unharmed process is not profiled."""
        return f'process {self.unharmed.pid}' in self.profd.stderr or \
            self.unharmed.pid in self.killed()

    # The steps; each is a generator that yields while it waits.

    def until(self, condition, what, seconds=None):
        """Waits, and sends signals. Without seconds it is a failure if the
        condition does not come."""
        deadline = time.monotonic() + (seconds or PATIENCE_S)
        while not condition():
            if time.monotonic() > deadline:
                if seconds:
                    return
                raise Failure(f'waited {PATIENCE_S} s in vain: {what}')
            yield
            self.send_signal()

    def while_it_runs(self, condition, what, seconds=None):
        yield from self.until(lambda: not self.profd.running() or condition(),
                              what, seconds)

    def send_signal(self):
        if self.unharmed.running():
            os.kill(self.unharmed.pid, signal.SIGRTMIN)
            self.signals += 1

    def more_chunks(self, seconds):
        before = self.chunks()
        yield from self.while_it_runs(lambda: self.chunks() > before,
                                      'a chunk more', seconds)

    def run(self):
        self.start_all()
        yield from self.while_it_runs(lambda: control.listens(self.socket),
                                      'a socket', STEP_S)
        for program in (self.changing, self.unharmed):
            yield from self.while_it_runs(
                lambda p=program: self.is_profiled(p), 'profiled', STEP_S)
        yield from self.while_it_runs(self.chunks, 'a chunk', STEP_S)
        if self.profd.running():
            self.begin()
            self.write_config(2)
            self.profd.signal(signal.SIGHUP)
        yield from self.change()
        yield from self.more_chunks(self.strained_s)
        self.relieve()
        if self.failed():
            yield from self.recover()
        yield from self.finish()
        yield from self.check_targets()

    def change(self):
        """The other process executes itself, and ends."""
        self.changing.signal(signal.SIGUSR1)
        yield from self.until(lambda: not self.changing.running() or
                              'again 1' in self.changing.stdout, 'an exec')
        self.changing.process.kill()
        yield from self.until(lambda: not self.changing.running(), 'an end')

    def recover(self):
        """The daemon ends, or the process is profiled as before."""
        before = self.chunks()
        yield from self.while_it_runs(
            lambda: self.is_explained() or
            (self.is_profiled(self.unharmed) and self.chunks() > before),
            'the unharmed process is profiled again')

    def finish(self):
        ended = not self.profd.running()
        if not ended:
            self.profd.signal(signal.SIGTERM)
        yield from self.until(lambda: not self.profd.running(),
                              'the daemon\'s end')
        status = self.profd.process.returncode
        text = self.profd.stderr
        found = harness.FAULT.findall(text)
        check(not found, f'{found}')
        found = [] if self.may_crash else CRASH.findall(text)
        check(not found, f'{found}')
        check(BLAME not in text, f'a child is blamed: {text}')
        found = set(AGAIN.findall(text)) - self.may_restart
        check(not found, f'started again without a fault: {found}')
        check(status in self.statuses(),
              f'the daemon ended with status {status}')
        if ended:
            check(self.failed(), 'the daemon ended without a reason')
            check(status != 0, 'it ended early, with status 0')
        check(status in (0, -signal.SIGKILL) or text.strip(),
              f'status {status} without a line')
        if status in (0, harness.ALL_LOST):
            self.check_stats()
        if status == 0 and self.is_whole and not AGAIN.search(text):
            self.check_rate()
        self.outcome = f'it ends with status {status}'
        if status == 0:
            self.outcome = 'a process is started again' \
                if 'starting it again' in text else 'all go on'

    def check_stats(self):
        check_sums(self.profd.stats)

    def check_rate(self):
        """No fault of other processes costs the unharmed one many samples. After a
        shortage the broker reads capture's messages later, so duration_s may begin
        after the first ticks."""
        stats, lived_s = self.profd.stats, time.monotonic() - self.profd.started
        for of in stats['targets']:
            if of['pid'] != self.unharmed.pid or of['ticks'] < TICKS_MIN:
                continue
            seconds = lived_s if stats['resource_shortages'] else of['duration_s']
            check(of['ticks'] <= 1.1 * of['rate_hz'] * seconds,
                  f'too many ticks: {of}')
            check(of['samples_taken'] >= 0.5 * of['ticks'] * len(self.tids),
                  f'few samples of {len(self.tids)} threads: {of}')

    def check_targets(self):
        pid = self.unharmed.pid
        if pid in self.killed():
            yield from self.until(lambda: not self.unharmed.running(),
                                  'its end by SIGKILL')
            return
        check(self.unharmed.running(), 'the unharmed process has ended')
        yield from self.until(lambda: all(
            not harness.tracer(t) and harness.state(t) not in 'tT'
            for t in harness.threads(pid)), 'it is let go of')
        self.unharmed.process.stdin.write(f'end {self.signals}\n'.encode())
        self.unharmed.process.stdin.flush()
        # No more signals are sent.
        self.send_signal = lambda: None
        yield from self.until(lambda: not self.unharmed.running(), 'its end')
        check('unharmed' in self.unharmed.stdout.splitlines(),
              f'harmed: {self.unharmed.stdout}{self.unharmed.stderr}')

    def end(self):
        self.relieve()
        for program in reversed(self.programs):
            program.end()
            self.box.programs.remove(program)
        if not self.outcome.startswith('FAILED'):
            shutil.rmtree(self.dir, ignore_errors=True)

    def text(self):
        return ''.join(p.report() for p in self.programs)


class Counting(Life):
    """A life in which nothing fails. Counts the system calls."""

    def __init__(self, *args):
        super().__init__(*args)
        self.report = self.dir / 'report'

    def wrapper(self):
        return [BUILD / 'targets/faults', self.report, 'count']

    def finish(self):
        if self.profd.process.poll() == UNABLE:
            raise Skip(f'no filter of calls: {self.profd.stderr}')
        yield from super().finish()

    def check_targets(self):
        """Sets counts: {(process, call, request): times}; request: as the text
        of faults.c."""
        yield from super().check_targets()
        yield from self.until(lambda: self.lines()[-1:] == ['end'],
                              'the counts')
        words = [l.split() for l in self.lines()[:-1]]
        self.counts = {tuple(w[:3]): int(w[3]) for w in words}

    def lines(self):
        with contextlib.suppress(OSError):
            return self.report.read_text().splitlines()
        return []


class Failing(Life):
    """A life in which one system call fails. rule: of tests/targets/faults.c."""

    def __init__(self, *args, rule):
        super().__init__(*args)
        self.rule = rule
        self.is_whole = rule[0] in ('ship', 'helper', 'broker')
        if rule[0] in CHILDREN:
            self.may_restart = {rule[0]}
        self.report = self.dir / 'report'

    def wrapper(self):
        return [BUILD / 'targets/faults', self.report, *self.rule]

    def reported(self):
        with contextlib.suppress(OSError):
            return self.report.read_text().split()
        return []

    def failed(self):
        return self.reported() != []

    def killed(self):
        tid = int((self.reported() + ['0'] * 3)[2])
        if tid == 0:
            return ()
        return (self.unharmed if tid in self.tids else self.changing).pid,
