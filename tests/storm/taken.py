"""Taken: children of the broker that a target has taken over.

In each round one or two of capture, unwind and ship are a stand-in (taken_child.py) with a
behaviour drawn from the seed: it lies, keeps no order, floods, stays mute, does not read, does
not end, passes descriptors, writes nonsense into shared memory, or dies. Only the children of one
user and one server are taken over, except capture, of which there is one.

A bystander of another user and another server has to be profiled meanwhile: its processes live
on, the samples come at its rate, and each sample that was expected is taken or counted as missed.
After each round the children are the real ones again, and new processes have to arrive at both
servers. A canary, a process of a third user, is never traced and never signalled. The broker
answers during the rounds, and its processor time, memory and descriptors are compared between
rounds.

With 200 seconds or more, the last round waits until the broker itself has ended children that do
not answer or do not end, for which it takes a minute.
"""

import collections
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import time

import control
import harness
import messages
import stranger
from account import check_sums
from envelopes import KEY, PROJECT
from harness import BUILD, Envelope, Failure, check, wait_for
from test_record import Recording
from upkeep import Arrivals, Log, replace_config

SHORT_S = 4

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ('capture', 'unwind', 'ship')
# What is taken over in a round. capture takes part less often: without it nothing is sampled.
TAKEN = (('unwind',), ('unwind',), ('ship',), ('unwind', 'ship'), ('capture',),
         ('capture', 'unwind', 'ship'))
ROUND_S = 3.0
OVERDUE_AT_S = 200
# Children that the broker ends for no message: after a minute of silence.
OVERDUE = ('mute', 'ready_and_mute', 'deaf', 'stay')

RATE_HZ, THREADS = 101, 2
# Of the samples that the bystander's rate is good for.
RATE_SHARE = (0.5, 1.2)

# A quiet broker with two processes to watch; with sanitizers, on a busy machine.
CALM_CPU = 0.4
# What the broker may use while a child floods it.
STORM_CPU = 0.7
# Growth between rounds, beyond the first: the allocator's, AddressSanitizer's quarantine.
GROWTH_BYTES = 96 << 20
DESCRIPTORS = 10
OF_A_CHILD = 4

RECORD, METRICS, CHECK = 13, 16, 18
# Each has a connection, of which a process may have 8.
RECORDINGS = 5
# What the broker holds of the chunks of recordings: 16 MB, and perhaps the chunk that it looks at.
RECORDED_BYTES = (16 + 17) << 20
PIDFD = 'anon_inode:[pidfd]'


class ProfilerIds:
    """The profiler ids in the chunks that a server has received."""

    def __init__(self, server):
        self.server, self.arrivals = server, Arrivals(server)
        self.ids = collections.Counter()

    def read(self):
        for request, data in self.arrivals.requests():
            # The stand-in's payloads are no profiles.
            with contextlib.suppress(ValueError, KeyError, TypeError):
                if data is not None:
                    chunk = Envelope(data, request['envelope']).chunk
                    self.ids[chunk['profiler_id'] if chunk else ''] += 1
        return self.ids


class Taken:
    def __init__(self, box, rng):
        self.box, self.rng = box, rng
        self.figures = collections.Counter()
        self.dir = box.make_dir('taken')
        self.exes = box.make_dir('exes')
        self.path, self.socket = self.dir / 'profd.conf', self.dir / 'socket'
        self.victims, self.others = (ProfilerIds(box.server(tls=False, host='0.0.0.0'))
                                     for _ in range(2))
        self.uid, self.host = stranger.UID, 1
        self.calms = []
        self.install()
        self.write()
        self.start()

    # What the daemon runs.

    def install(self):
        shutil.copy(BUILD / 'sentry-profd', self.exes)
        for kind in KINDS:
            shutil.copy(f'{HERE}/taken_child.py', self.exes / f'sentry-profd-{kind}')
            (self.exes / f'sentry-profd-{kind}').chmod(0o755)
        shutil.copy(harness.ROOT / 'tests/integration/hostile.py', self.exes)
        table = messages.table()
        (self.exes / 'table').write_text(json.dumps(table))
        (self.exes / 'log').touch()
        for name in ('victim', 'bystander'):
            shutil.copy(BUILD / 'targets/shares', self.dir / name)
            (self.dir / name).chmod(0o755)
        self.files = []
        self.sink = socket.socket()
        self.sink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.sink.bind(('127.0.0.1', 0))
        self.sink.listen(4096)
        self.take_over(())

    def take_over(self, kinds, behaviours=()):
        plan = {'hostile': kinds, 'behaviours': behaviours, 'seed': self.rng.randrange(10**9),
                'real': str(BUILD), 'files': self.files, 'sink': self.sink.getsockname()[1]}
        new = self.exes / 'plan.new'
        new.write_text(json.dumps(plan))
        new.rename(self.exes / 'plan')

    def dsn(self, arrivals, host):
        """Every address of 127/8 is loopback's, so a server has many DSNs."""
        return f'http://{KEY}@127.0.0.{host}:{arrivals.server.port}/{PROJECT}'

    def write(self):
        """The victims get a DSN, and so a ship, that no process had before."""
        self.host = self.host % 250 + 1
        other = self.dsn(self.others, 1)
        text = (f'[sentry]\ndsn = {other}\n[profiler]\nchunk_seconds = 1\n'
                f'rate_hz = {RATE_HZ}\nspool = none\n')
        for name, dsn in (('victim', self.dsn(self.victims, self.host)), ('bystander', other)):
            text += (f'[target "{name}"]\nexe = {self.dir / name}\ndsn = {dsn}\n'
                     'autostart = yes\nprofile_session_sample_rate = 1\n'
                     f'min_age_seconds = 0\nrelease = {name}@1\n')
        replace_config(self.path, text)

    def start(self):
        # AddressSanitizer keeps freed memory, which is no growth of the broker.
        env = harness.environment(ASAN_OPTIONS='quarantine_size_mb=4')
        self.profd = self.box.profd([], '--config', self.path, '--socket', self.socket,
                                    '--shutdown-timeout', '2', output=False, env=env,
                                    exe=self.exes / 'sentry-profd')
        self.log = Log(self.profd)
        self.canary = self.box.start(['sleep', 10**6], **stranger.options(stranger.UID - 1))
        self.precious = self.dir / 'precious'
        self.precious.write_text('of root\n')
        self.precious.chmod(0o600)
        self.bystander = None
        self.wait_for(lambda: control.listens(self.socket), 'a socket')
        self.ship = self.wait_for(lambda: self.real('ship'), 'the ship of [sentry]')

    def process(self, name, uid):
        program = self.box.start([self.dir / name], **stranger.options(uid))
        program.wait_line('ready.*')
        return program

    def drop(self, program):
        program.end()
        self.box.programs.remove(program)

    def new_uid(self):
        self.uid += 1
        return self.uid

    def mapped(self, pid):
        return set(re.findall(r'(/\S+)$', harness.proc_text(pid, 'maps'), re.M))

    # What the daemon says.

    def ask(self, kind, pid=0):
        """Returns the bytes of a memfd, or the descriptor of the answer; None: none came."""
        began = time.monotonic()
        # A broker that waits for a child does not answer.
        with control.dial(self.socket) as s:
            try:
                s.send(control.hello())
                s.recv(4096)
                s.send(control.request(kind, pid))
                _, fds, _, _ = socket.recv_fds(s, 4096, 1)
            except TimeoutError:
                raise Failure(f'the broker has not answered for {s.gettimeout()} s') from None
        self.figures['slowest answer, ms'] = max(
            self.figures['slowest answer, ms'], round(1000 * (time.monotonic() - began)))
        return fds[0] if fds else -1

    def text(self, kind, pid=0):
        fd = self.ask(kind, pid)
        check(fd >= 0, f'an answer without a file to request {kind}')
        with open(fd, 'rb') as file:
            file.seek(0)
            return file.read().decode()

    def status(self):
        return json.loads(self.text(control.STATUS))

    def of(self, program, status=None):
        found = (status or self.status())['targets']
        return next((t for t in found if t['pid'] == program.pid), {})

    def children(self):
        """Returns {pid: (kind, is a stand-in)}. A stand-in's executable is Python."""
        found = {}
        for pid in harness.children(self.profd.pid):
            name = harness.proc_text(pid, 'comm').strip()
            for kind in KINDS:
                if name == f'sentry-profd-{kind}'[:15]:
                    found[pid] = kind, 'python' in harness.exe_name(pid)
        return found

    def real(self, kind):
        return {pid for pid, (of, taken) in self.children().items() if of == kind and not taken}

    # What has to hold.

    def check_health(self):
        check(self.profd.running(), 'the broker has ended: status '
              f'{self.profd.process.returncode}: {self.profd.stderr[-2000:]}')
        text = self.log.new_lines().decode(errors='replace')
        found = [line for line in harness.FAULT.findall(text)
                 if 'SIGSYS' not in line]
        check(not found, f'{found}')
        self.figures['lines of the log'] = self.log.lines
        wrong = re.findall('^(?:leak|fault): .*$', (self.exes / 'log').read_text(), re.M)
        check(not wrong, f'a file of others was sent, or a stand-in is wrong: {wrong}')
        check(self.canary.running() and harness.tracer(self.canary.pid) == 0 and
              harness.proc_status(self.canary.pid, 'SigPnd').strip('0') == '',
              'the canary was touched')
        forged = re.findall('^sentry-profd: warning: forged', text, re.M)
        check(not forged, 'a line of the broker is forged')
        check(self.precious.read_text() == 'of root\n', 'a file of root was written')

    def wait_for(self, condition, what):
        def looked():
            self.check_health()
            return condition()
        return wait_for(looked, what)

    def wait_arrival(self, arrivals, program):
        """A chunk of the present run on the program."""
        def arrived():
            wanted = self.of(program).get('profiler_id')
            if not wanted:
                return False
            have = arrivals.read()[wanted]
            self.arrived = self.arrived or (wanted, have)
            if self.arrived[0] != wanted:
                self.arrived = wanted, have
            return have > self.arrived[1]
        self.arrived = None
        try:
            self.wait_for(arrived, f'a chunk of {program.name}')
        except Failure as e:
            raise Failure(f'{e}; {self.of(program)}, {self.profd.stderr[-2000:]}') from None

    def measure(self):
        """A moment without a storm: what the broker uses."""
        began, used = time.monotonic(), harness.cpu_seconds(self.profd.pid)
        time.sleep(1)
        share = (harness.cpu_seconds(self.profd.pid) - used) / (time.monotonic() - began)
        kinds = collections.Counter(harness.descriptors(self.profd.pid).values())
        return {'cpu': share, 'rss': int(harness.proc_status(self.profd.pid, 'VmRSS').split()[0])
                << 10, 'fds': kinds.total() - kinds[PIDFD], 'children': len(self.children()),
                'pidfds': kinds[PIDFD], 'targets': len(self.status()['targets'])}

    def is_flat(self, now, first):
        more = max(0, now['children'] - first['children'])
        return now['fds'] <= first['fds'] + DESCRIPTORS + OF_A_CHILD * more and \
            now['pidfds'] <= now['targets'] + DESCRIPTORS and now['cpu'] < CALM_CPU and \
            now['rss'] < first['rss'] + GROWTH_BYTES

    def calm(self):
        first = self.calms[0] if self.calms else None

        def flat():
            self.now = self.measure()
            return not first or self.is_flat(self.now, first)
        try:
            self.wait_for(flat, 'the broker uses as much as before')
        except Failure as e:
            raise Failure(f'{e}: {self.now}, at first {first}, '
                          f'{harness.descriptors(self.profd.pid)}') from None
        self.calms.append(self.now)

    # A round.

    def watch_bystander(self):
        if self.bystander is None:
            before = self.real('unwind')
            self.bystander = self.process('bystander', self.new_uid())
            self.wait_for(lambda: self.real('unwind') - before, 'an unwind of the bystander')
            # Its ship is that of [sentry], which no victim has.
            self.own = {'capture': self.real('capture'), 'ship': self.ship,
                        'unwind': self.real('unwind') - before}
            self.files = sorted(self.mapped(self.bystander.pid) -
                                {str(self.dir / 'bystander')} | {str(self.dir / 'victim')})
        self.wait_for(lambda: self.of(self.bystander).get('state') == 'profiling',
                      'the bystander is profiled')

    def disturb(self, programs):
        """What users do meanwhile, so that the broker has more to say to its children."""
        program = self.rng.choice(programs)
        choice = self.rng.randrange(6)
        if choice == 0 and len(self.recordings) < RECORDINGS:
            self.recordings.append(Recording(self.socket, program.pid))
        elif choice == 1:
            self.text(METRICS)
        elif choice == 2:
            fd = self.ask(CHECK)
            self.checks += [fd] if fd >= 0 else []
        elif choice == 3 and self.recordings:
            self.recordings.pop(self.rng.randrange(len(self.recordings))).close()

    def recorded_bytes(self):
        held = 0
        for fd, kind in harness.descriptors(self.profd.pid).items():
            with contextlib.suppress(FileNotFoundError):
                if kind.startswith('/memfd:recorded'):
                    held += os.stat(f'/proc/{self.profd.pid}/fd/{fd}').st_blocks * 512
        return held

    def check_recordings(self):
        """Some are read, and others are not."""
        for r in self.recordings[::2]:
            if r.socket:
                r.socket.setblocking(False)
                with contextlib.suppress(BlockingIOError, ConnectionError):
                    while r.take_message():
                        self.figures['pieces of recordings'] += 1
        held = min(self.recorded_bytes() for _ in range(3))
        self.figures['most memory of recordings, MB'] = max(
            self.figures['most memory of recordings, MB'], held >> 20)
        check(held <= RECORDED_BYTES, f'the broker holds {held} bytes of recordings')

    def attack(self, kinds, seconds, behaviours=()):
        """Returns the processes that were attacked, still under attack."""
        before = self.log_lines()
        self.take_over(kinds, behaviours)
        if 'capture' in kinds:
            for pid in self.real('capture'):
                os.kill(pid, signal.SIGKILL)
        uid = self.new_uid()
        victims = [self.process('victim', uid) for _ in range(2)]
        self.wait_for(lambda: self.log_lines() > before, f'{kinds} are taken over')
        self.recordings, self.checks = [], []
        end = time.monotonic() + seconds
        used, began = harness.cpu_seconds(self.profd.pid), time.monotonic()
        while time.monotonic() < end:
            self.check_health()
            self.status()
            self.disturb(victims)
            self.check_recordings()
            self.victims.read()
            self.others.read()
            time.sleep(self.rng.uniform(0, 0.1))
        share = (harness.cpu_seconds(self.profd.pid) - used) / (time.monotonic() - began)
        self.figures['broker in a round, most %'] = max(
            self.figures['broker in a round, most %'], round(100 * share))
        check(share < STORM_CPU, f'{kinds}: the broker uses {share:.0%} of a processor')
        return victims

    def log_lines(self):
        return len((self.exes / 'log').read_text().splitlines())

    def end_attack(self):
        """The real children again. Those that the broker did not end are killed."""
        self.take_over(())
        for pid, (_, taken) in self.children().items():
            if taken:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                self.figures['stand-ins that lived on'] += 1
        for r in self.recordings:
            r.close()
        for fd in self.checks:
            os.close(fd)
        self.wait_for(lambda: not any(taken for _, taken in self.children().values()),
                      'no stand-in is left')

    def round(self, kinds):
        self.write()
        self.profd.signal(signal.SIGHUP)
        self.watch_bystander()
        began, before = time.monotonic(), self.of(self.bystander)['samples_taken']
        victims = self.attack(kinds, ROUND_S)
        if 'capture' not in kinds:
            after, ended = self.of(self.bystander), time.monotonic()
            self.check_bystander(after, before, ended - began)
            for kind in KINDS:
                check(self.own[kind] <= self.real(kind),
                      f'{kinds} are taken over, and the {kind} of the bystander has ended')
        self.end_attack()
        for program in victims:
            self.drop(program)
        if 'capture' in kinds:
            # A capture that was taken over can have had it left out.
            self.drop(self.bystander)
            self.bystander = None
            self.watch_bystander()
        victim = self.process('victim', self.uid)
        self.wait_arrival(self.victims, victim)
        self.wait_arrival(self.others, self.bystander)
        self.drop(victim)
        self.calm()
        self.figures['rounds'] += 1

    def check_bystander(self, after, before, seconds):
        check(after.get('state') == 'profiling', f'the bystander: {after}')
        share = (after['samples_taken'] - before) / (seconds * RATE_HZ * THREADS)
        self.shares = getattr(self, 'shares', []) + [share]
        check(RATE_SHARE[0] / harness.stretch() < share < RATE_SHARE[1],
              f'the bystander has {share:.0%} of its samples')

    def overdue(self):
        """Children that owe something and do nothing: the broker ends each by itself."""
        self.watch_bystander()
        self.write()
        self.profd.signal(signal.SIGHUP)
        for behaviour in OVERDUE:
            victims = self.attack(KINDS, 1, (behaviour,))
            pids = [pid for pid, (_, taken) in self.children().items() if taken]
            self.take_over(())
            self.wait_for(lambda p=pids: not set(p) & set(self.children()),
                          f'children that are {behaviour} are ended')
            for program in victims:
                self.drop(program)
            self.end_attack()
        self.drop(self.bystander)
        self.bystander = None
        self.watch_bystander()
        self.wait_arrival(self.others, self.bystander)

    # The end.

    def end(self):
        self.profd.signal(signal.SIGTERM)
        wait_for(lambda: not self.profd.running(), 'the end of the broker')
        self.check_end()
        stats = self.profd.stats
        check_sums(stats)
        of, = [t for t in stats['targets'] if t['pid'] == self.bystander.pid]
        check(of['samples_expected'] > 0, f'the bystander: {of}')
        check(self.bystander.running() and not harness.tracer(self.bystander.pid),
              'the bystander has ended, or is traced')
        self.figures['chunks made'] = stats['chunks']['made']
        self.figures['chunks above the budget'] = \
            stats['chunks']['discarded'].get('chunk_budget', 0)

    def check_end(self):
        status = self.profd.process.returncode
        check(status in (0, harness.ALL_LOST), f'the broker ended with {status}: '
              f'{self.profd.stderr[-2000:]}')

    def sum_up(self):
        log = (self.exes / 'log').read_text().splitlines()
        self.figures['stand-ins'] = len(log)
        for line in log:
            kind, behaviour, _ = line.split()
            self.figures[f'{kind}: {behaviour}'] += 1
        moments = {'start': self.calms[0], 'middle': self.calms[len(self.calms) // 2],
                   'end': self.calms[-1]}
        for name, m in moments.items():
            self.figures[f'{name}: broker'] = \
                f'{m["cpu"]:.1%} of a processor, {m["rss"] >> 10} KB, ' \
                f'{m["fds"]} descriptors, {m["children"]} children'
        shares = getattr(self, 'shares', None)
        if shares:
            self.figures['bystander, samples of its rate'] = \
                f'{min(shares):.0%} to {max(shares):.0%}'
        return self.figures


def run(box, seconds, rng):
    stranger.need_root()
    storm = Taken(box, rng)
    storm.watch_bystander()
    storm.wait_arrival(storm.others, storm.bystander)
    storm.calm()
    end = time.monotonic() + seconds
    kinds = []
    while time.monotonic() < end or not storm.figures['rounds']:
        kinds = kinds or rng.sample(TAKEN, len(TAKEN))
        taken = kinds.pop()
        try:
            storm.round(taken)
        except (Failure, OSError) as e:
            raise Failure(f'{taken}: {e}; after {dict(storm.figures)}, '
                          f'{(storm.exes / "log").read_text().splitlines()[-6:]}') from e
    if seconds >= OVERDUE_AT_S:
        storm.overdue()
    storm.end()
    return storm.sum_up()
