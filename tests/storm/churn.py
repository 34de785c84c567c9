"""Churn: processes are born and die by the hundred, become other programs, are
attached and detached, while the configuration changes and each of the daemon's
processes is killed.

Of the processes 41 live on: those of section "work", and some that are attached
by name. In between it gets calm. Then the configuration is the first one again,
all but the 41 have ended, and what has to hold at any time is compared: each of
them is profiled and has a chunk at the server, no child process of the broker
has ended but by our kills, and the broker has as many descriptors as in the
beginning. In a lack of descriptors the broker waits, and uses no processor.
"""

import collections
import contextlib
import os
import resource
import signal
import socket
import subprocess
import time

import control
import harness
import stranger
from account import check_sums
from envelopes import KEY, PROJECT
from harness import BUILD, Failure, check, wait_for
from upkeep import (CHILDREN, Arrivals, Log, operator, replace_config,
                    restarts)

SHORT_S = 6

WORKERS, ALONE = 35, 6
USERS = (0, stranger.UID, stranger.UID + 1)

WAVE = 300
RATE_HZ, RAISED_HZ = 101, 400
CALM_S = 15
PACE_S = (0, 0.05)

# A lack of descriptors, and a share of a processor that says that the broker
# does not wait for its end.
LACK_S = (0.05, 0.5)
SPINNING_S, SPINNING = 1.0, 0.6

# What may be open at a moment though nothing is left of the storm: a connection,
# files that are read.
DESCRIPTORS = 8

PIDFD = 'anon_inode:[pidfd]'

# The daemon may have so many ships; a DSN that nobody uses may keep its own for
# this long. Beyond both, a new DSN gets a ship.
SHIPS = 24
DSN_S = 70

FIRST_HOST, HOSTS = 2, 250


class Makers:
    """A program that makes processes (tests/targets/churn.c), copied to where a
    section looks for it."""

    def __init__(self, churn, name, user=0):
        self.exe = churn.exe(name)
        self.program = churn.box.start(
            [self.exe, 'make', churn.exe('become'), 'x' * 64],
            stdin=subprocess.PIPE, **stranger.options(user),
            env=harness.environment(SENTRY_PROFD_SOCKET=str(churn.socket)))
        self.program.wait_line('ready.*')
        self.said = open(self.program.out_path, encoding='ascii')
        self.said.readline()
        self.pid = self.program.pid
        self.left = 0

    def tell(self, *words):
        self.program.process.stdin.write(
            (' '.join(map(str, words)) + '\n').encode())
        self.program.process.stdin.flush()
        line = wait_for(self.said.readline, 'an answer of churn')
        self.left = int(line.split()[1])


class Churn:
    def __init__(self, box, rng, workers=WORKERS, alone=ALONE):
        self.box, self.rng = box, rng
        self.workers_n, self.alone_n = workers, alone
        self.figures = collections.Counter()
        self.dir = box.make_dir('churn')
        self.dir.chmod(0o755)
        self.path = self.dir / 'profd.conf'
        self.socket = self.dir / 'socket'
        self.server = box.server(tls=False, host='0.0.0.0')
        self.full = box.server(tls=False, script=[
            {'status': 429, 'headers': {'Retry-After': '86400'}}] * 10000)
        self.arrivals = Arrivals(self.server)
        self.arrived = set()
        self.host, self.dsn_at = FIRST_HOST, 0.0
        self.working, self.alone = [], []
        self.frozen = 0
        self.waves = []
        self.start()

    def exe(self, name):
        """A copy of the program by this name."""
        path = self.dir / name
        if not path.exists():
            path.write_bytes((BUILD / 'targets/churn').read_bytes())
            path.chmod(0o755)
        return path

    # The configuration.

    def dsn(self):
        """The server's. Every address of 127/8 is loopback's: so it has as many
        DSNs as one wants."""
        return f'http://{KEY}@127.0.0.{self.host}:{self.server.port}/{PROJECT}'

    def new_dsn(self):
        now = time.monotonic()
        if len(self.profd.helpers()['ship']) < SHIPS or \
                now - self.dsn_at > DSN_S:
            self.dsn_at = now
            self.host = FIRST_HOST + (self.host + 1 - FIRST_HOST) % HOSTS
            self.figures['DSNs'] += 1
        return self.dsn()

    def sections(self):
        return {
            'work': {'exe': self.exe('work'), 'dsn': self.dsn()},
            'plain': {'exe': self.exe('plain'), 'max_instances': 8},
            'aged': {'exe': self.exe('aged'), 'min_age_seconds': 1,
                     'max_instances': 8},
            'become': {'exe': self.exe('become'), 'max_instances': 8},
            'comm': {'comm': 'churn-marked', 'max_instances': 12},
            'title': {'cmdline': 'churn-marked*', 'max_instances': 8},
        }

    def write(self, sections, rate_hz=RATE_HZ):
        text = (f'[sentry]\ndsn = {self.dsn()}\nuser_attach = send\n[profiler]\n'
                f'chunk_seconds = 3\nrate_hz = {rate_hz}\n')
        for name, keys in sections.items():
            text += f'[target "{name}"]\nautostart = yes\n'
            keys = {'profile_session_sample_rate': 1, 'min_age_seconds': 0,
                    'release': f'{name}@1', **keys}
            text += ''.join(f'{k} = {v}\n' for k, v in keys.items())
        replace_config(self.path, text)

    def change(self, sections, names):
        for name in names:
            sections[name].update(self.rng.choice((
                {'rate_hz': self.rng.choice((20, RATE_HZ, RAISED_HZ))},
                {'dsn': self.new_dsn()}, {'dsn': self.full.dsn},
                {'environment': self.rng.choice('abc')},
                {'max_instances': self.rng.choice((1, 3, 20, 100))},
                {'min_age_seconds': self.rng.choice((0, 1, 3600))},
                {'profile_session_sample_rate': self.rng.choice((0, 0.5))},
                {'profile_lifecycle': self.rng.choice(('trace', 'manual'))})))

    def remove(self, sections, names):
        for name in names:
            keys = sections.pop(name)
            if self.rng.random() < 0.5:
                sections[f'{name}-2'] = keys

    def some(self, sections):
        return [n for n in sections if self.rng.random() < 0.4]

    def hangup(self):
        self.figures['reloads'] += 1
        self.profd.signal(signal.SIGHUP)

    def rate_hz(self):
        return self.rng.choice((RATE_HZ, RATE_HZ, RAISED_HZ))

    # The processes.

    def start(self):
        self.write(self.sections())
        self.profd = self.box.profd([], '--config', self.path, '--socket',
                                    self.socket, output=False)
        self.log = Log(self.profd)
        self.control = operator(self.box, self.profd, self.socket)
        self.working = [self.new('work', n) for n in range(self.workers_n)]
        self.alone = [self.new('alone', n) for n in range(self.alone_n)]
        self.waves = [Makers(self, 'plain'), Makers(self, 'aged'),
                      Makers(self, 'other'),
                      Makers(self, 'others', stranger.UID)]

    def new(self, name, n):
        self.figures['births'] += 1
        uid = USERS[n % len(USERS)]
        return self.box.start([self.exe(name), 'work'],
                              **stranger.options(uid))

    def wanted(self):
        return [p.pid for p in self.working + self.alone]

    # What happens, one thing after another.

    def wave(self):
        maker = self.rng.choice(self.waves)
        what = self.rng.choice(('plain', 'comm', 'title', 'client'))
        n = self.rng.choice((1, 20, WAVE))
        if maker.left < n:
            maker.tell('fork', n, what)
        else:
            maker.tell('turn', n, what)
            self.figures['deaths'] += n
        self.figures['births'] += n
        self.figures['waves'] += n == WAVE

    def burst(self):
        """Of processes that only their command line can tell apart."""
        self.waves[2].tell('fork', WAVE, 'title')
        time.sleep(self.rng.uniform(0, 0.3))
        self.waves[2].tell('kill', WAVE)
        self.figures['waves'] += 1
        self.figures['births'] += WAVE
        self.figures['deaths'] += WAVE

    def thin_out(self):
        maker = self.rng.choice(self.waves)
        n = self.rng.randint(0, maker.left)
        maker.tell('kill', n)
        self.figures['deaths'] += n

    def exec(self):
        n = self.rng.choice((1, 10, 100))
        maker = self.rng.choice(self.waves)
        maker.tell('exec', n)
        self.figures['execs'] += min(n, maker.left)

    def restart(self):
        """One of the 41, or some of them, ends, and another comes."""
        for _ in range(self.rng.choice((1, 1, 10))):
            of, name = self.rng.choice(((self.working, 'work'),
                                        (self.alone, 'alone')))
            n = self.rng.randrange(len(of))
            self.drop(of[n])
            self.figures['deaths'] += 1
            of[n] = self.new(name, n)

    def drop(self, program):
        program.end()
        self.box.programs.remove(program)

    def reload(self):
        sections = self.sections()
        self.change(sections, self.some(sections))
        self.remove(sections, self.some(sections))
        self.write(sections, self.rate_hz())
        self.hangup()

    def reload_twice(self):
        """What the first changes the second removes, before its run has ended."""
        sections = self.sections()
        names = self.some(sections)
        self.change(sections, names)
        self.write(sections, self.rate_hz())
        self.hangup()
        time.sleep(0.002)
        self.remove(sections, names)
        self.write(sections)
        self.hangup()

    def profctl(self, *args, uid=None):
        options = {} if uid is None else stranger.options(uid)
        done = subprocess.run(
            [self.control.exe, *map(str, args)], text=True, check=False,
            capture_output=True, cwd='/', env=harness.environment(
                SENTRY_PROFD_SOCKET=str(self.socket)), **options)
        check(done.returncode in (0, 1) and not harness.FAULT.search(
            done.stderr), f'sentry-profctl {args}: {done.stderr}')
        return done.returncode == 0

    def one(self):
        return self.rng.choice(self.alone if self.rng.random() < 0.7
                               else self.working)

    def attach(self):
        program = self.one()
        uid = int(harness.proc_status(program.pid, 'Uid').split()[0])
        self.figures['attaches'] += self.profctl('attach', program.pid, uid=uid)

    def detach(self):
        self.figures['detaches'] += self.profctl('detach', self.one().pid)

    def rude(self):
        """Says what it wants, and is gone before the answer."""
        with contextlib.suppress(OSError), control.dial(self.socket) as s:
            s.send(control.hello())
            for _ in range(self.rng.randint(0, 5)):
                kind = self.rng.choice((control.ATTACH, control.DETACH,
                                        control.START, control.STOP,
                                        control.STATUS, control.RELOAD))
                s.send(control.request(kind, pid=self.one().pid))
                self.figures['rude requests'] += 1

    def kill(self):
        kind = self.rng.choice(CHILDREN + ('files',))
        pids = self.profd.children_of(kind)
        if not pids:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.rng.choice(pids), signal.SIGKILL)
            self.figures[f'kills of {kind}'] += 1

    def freeze(self):
        """An unwind that closes no session any more: once in a calm."""
        if self.frozen:
            return
        owner = self.rng.randrange(len(USERS))
        found = [p for p in self.profd.helpers()['unwind']
                 if harness.proc_status(p, 'State')[:1] in 'SR']
        if not found:
            return
        self.frozen = self.rng.choice(found)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.frozen, signal.SIGSTOP)
            self.figures['freezes'] += 1
        # A process of each user ends: one of them is in the hands of that one.
        for n in range(owner, owner + len(USERS)):
            self.drop(self.working[n])
            self.working[n] = self.new('work', n)

    @contextlib.contextmanager
    def lack(self):
        """The broker may open none more, or a few."""
        limits = resource.prlimit(self.profd.pid, resource.RLIMIT_NOFILE)
        n = len(os.listdir(f'/proc/{self.profd.pid}/fd')) + \
            self.rng.randint(0, 3)
        resource.prlimit(self.profd.pid, resource.RLIMIT_NOFILE,
                         (n, limits[1]))
        self.figures['lacks'] += 1
        try:
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(self.profd.pid, resource.RLIMIT_NOFILE, limits)

    def lack_in_storm(self):
        with self.lack(), contextlib.ExitStack() as stack:
            for _ in range(self.rng.randint(0, 4)):
                stack.enter_context(self.connect())
            for _ in range(self.rng.randint(1, 3)):
                self.rng.choice((self.burst, self.wave, self.exec, self.kill,
                                 self.restart, self.reload))()
            time.sleep(self.rng.uniform(*LACK_S))

    def connect(self):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.setblocking(False)
        with contextlib.suppress(OSError):
            s.connect(str(self.socket))
        return s

    # What has to hold.

    def check_health(self):
        self.log.read()
        self.figures['lines of the log'] = self.log.lines

    def wait_for(self, condition, what):
        """As long as nothing is wrong."""
        def looked():
            self.check_health()
            self.check_restarts()
            return condition()
        return wait_for(looked, what)

    def read_arrivals(self):
        """Reads, and removes, what has come."""
        for chunk in self.arrivals.chunks():
            self.arrived.add(chunk['profiler_id'])
            self.figures['chunks'] += 1

    def check_profiled(self):
        """Each of the 41 is profiled, and what it was profiled by has sent."""
        def by_pid():
            return {t['pid']: t for t in self.control.status()['targets']}

        def profiled():
            found = by_pid()
            states = {pid: found.get(pid, {}).get('state', 'unknown')
                      for pid in self.wanted()}
            out = [found[p] for p, s in states.items() if s == 'left_out']
            check(not out, f'left out for good: {out}')
            self.missing = {p: s for p, s in states.items()
                            if s != 'profiling'}
            return not self.missing

        def sent():
            self.read_arrivals()
            found = by_pid()
            self.silent = [found.get(p, p) for p in self.wanted()
                           if found.get(p, {}).get('profiler_id')
                           not in self.arrived]
            return not self.silent
        self.missing = self.silent = None
        try:
            self.wait_for(profiled, 'all are profiled')
            self.arrived.clear()
            self.wait_for(sent, 'a chunk of each')
        except Failure as e:
            raise Failure(f'{e}; not profiled: {self.missing}, without a chunk: '
                          f'{self.silent}') from None

    def check_restarts(self):
        """Of the broker's figures: no child has ended but by our signals."""
        for (process, reason), n in restarts(self.control).items():
            allowed = {'signal': self.figures[f'kills of {process}'],
                       'dismissed': self.figures['freezes'] if
                       process == 'unwind' else 0,
                       'status': 0, 'heartbeat': n}[reason]
            if n:
                self.figures[f'restarts of {process}, {reason}'] = n
            check(n <= allowed, f'{process} was started again {n} times '
                  f'({reason}), and we are the reason of {allowed}')

    def descriptors(self):
        return collections.Counter(
            harness.descriptors(self.profd.pid).values())

    def helpers_n(self):
        return sum(len(of) for of in self.profd.helpers().values())

    def reason(self, e):
        """What a process died of says more than what was missed of it."""
        try:
            self.check_health()
            self.check_restarts()
        except (Failure, OSError) as first:
            e = first
        return e if isinstance(e, Failure) else f'{type(e).__name__}: {e}'

    def others(self):
        """Descriptors that are no process's."""
        return +collections.Counter({what: n for what, n in
                                     self.descriptors().items()
                                     if what != PIDFD})

    def check_descriptors(self, before):
        """One for each process that it knows, and the others are as many as
        before; but for what a ship or an unwind more has."""
        def flat():
            self.now = self.descriptors()
            known = len(self.control.status()['targets'])
            if self.now[PIDFD] > known + DESCRIPTORS:
                return False
            more = max(0, self.helpers_n() - before['helpers'])
            return self.others().total() <= \
                before['others'].total() + DESCRIPTORS + 4 * more
        try:
            self.wait_for(flat, 'as many descriptors as before')
        except Failure as e:
            raise Failure(f'{e}; descriptors: {self.now.most_common(8)}, '
                          f'before: {before}') from None

    def check_waiting(self):
        """Who lacks descriptors waits for them."""
        with self.lack(), contextlib.ExitStack() as stack:
            for _ in range(4):
                stack.enter_context(self.connect())
            began = time.monotonic()
            used = harness.cpu_seconds(self.profd.pid)
            time.sleep(SPINNING_S)
            used = harness.cpu_seconds(self.profd.pid) - used
            share = used / (time.monotonic() - began)
        self.figures['processor in a lack, %'] = max(
            self.figures['processor in a lack, %'], round(100 * share))
        check(share < SPINNING, 'without a descriptor for who connects, the '
              f'broker uses {share:.0%} of a processor')

    def calm(self, before=None):
        self.figures['calms'] += 1
        for maker in self.waves:
            self.figures['deaths'] += maker.left
            maker.tell('kill', maker.left)
        if before:
            self.new_dsn()
        self.write(self.sections())
        self.hangup()
        if self.frozen:
            self.wait_for(lambda: harness.state(self.frozen) in ('', 'Z'),
                     'an unwind that closes no session is killed')
            self.frozen = 0
        for program in self.alone:
            self.wait_for(lambda p=program: self.profctl('attach', p.pid),
                     f'{program.pid} is attached')
        for program in self.working:
            # What was detached is left alone until it is asked for.
            self.wait_for(lambda p=program: self.profctl('attach', p.pid) or
                     harness.tracer(p.pid), f'{program.pid} is attached')
        self.check_profiled()
        self.check_restarts()
        if before:
            self.check_descriptors(before)
            self.check_waiting()
        self.check_health()

    def go_on(self, seconds, ops, pace_s, calm_s):
        """Does one of ops, with these weights, after another; every calm_s, and at the
        end, there is a calm."""
        before = {'others': self.others(), 'helpers': self.helpers_n()}
        end = time.monotonic() + seconds
        calm = time.monotonic() + calm_s
        while time.monotonic() < end:
            name, = self.rng.choices(list(ops), ops.values())
            getattr(self, name)()
            time.sleep(self.rng.uniform(*pace_s))
            self.check_health()
            self.read_arrivals()
            if time.monotonic() > calm:
                self.calm(before)
                calm = time.monotonic() + calm_s
        self.calm(before)

    @contextlib.contextmanager
    def explained(self):
        """A failure in the block names its cause, and what was done before."""
        try:
            yield
        except (Failure, OSError) as e:
            raise Failure(f'{self.reason(e)}; after {dict(self.figures)}') from e

    def end(self):
        self.profd.signal(signal.SIGTERM)
        wait_for(lambda: not self.profd.running(), 'the end of the broker')
        check(self.profd.process.returncode == 0,
              f'the broker ended with {self.profd.process.returncode}')
        chunks = check_sums(self.profd.stats)
        self.figures['chunks made'] = chunks['made']
        for program in self.working + self.alone:
            check(program.running(), f'a target has ended: {program.report()}')
            wait_for(lambda p=program: all(
                not harness.tracer(t) and harness.state(t) not in 'tT'
                for t in harness.threads(p.pid)), 'a target is let go')


OPS = {'wave': 30, 'burst': 6, 'thin_out': 8, 'exec': 10, 'restart': 8,
       'reload': 6, 'reload_twice': 6, 'attach': 6, 'detach': 4, 'rude': 6,
       'kill': 4, 'lack_in_storm': 3}
# The calm after it waits for a minute, until the broker kills the frozen one.
LONG_OPS = {'freeze': 0.5}


def run(box, seconds, rng):
    stranger.need_root()
    churn = Churn(box, rng)
    churn.calm()
    churn.figures['descriptors at the start'] = churn.descriptors().total()
    ops = OPS | LONG_OPS if seconds > SHORT_S else OPS
    with churn.explained():
        churn.go_on(seconds, ops, PACE_S, CALM_S)
        churn.figures['descriptors at the end'] = churn.descriptors().total()
        churn.wave()
        churn.end()
    return churn.figures
