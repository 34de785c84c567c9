"""Where bombs go off: the daemon, a server, three honest processes beside the bombs
(bystanders), and a meter of what the daemon uses. A part of bombs.py.
"""

import contextlib
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import threading
import time

import bomb_files
import elf
import harness
import stranger
from envelopes import KEY, PROJECT
from harness import BUILD, check, wait_for
from upkeep import Arrivals, Log, operator

ATTACKER, OTHER = stranger.UID, stranger.UID + 1

# How long a bomb is attached at least.
HOLD_S = 2.0
# A storm of processes makes more chunks than can be read in between.
READ_S = 1
METER_S = 0.05
# The samples in which a bystander is complete or not, and what complete is.
WINDOW, COMPLETE = 100, 0.9

# What is no line of printable text, in the log or in a table.
CONTROL = re.compile(rb'[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]')


class Meter(threading.Thread):
    """Reads processor time and memory of the daemon's processes all the time."""

    def __init__(self, profd):
        super().__init__(daemon=True)
        self.profd = profd
        self.ended = threading.Event()
        self.before = {pid: self.read(pid, 'VmRSS')
                       for kind, pid in self.processes()}
        for pid in self.before:
            # Sets the peak to what is used now.
            with contextlib.suppress(OSError):
                pathlib.Path(f'/proc/{pid}/clear_refs').write_text('5')
        self.cpu_before = {pid: harness.cpu_seconds(pid) for pid in self.before}
        self.cpu, self.peak, self.kinds = {}, {}, {}

    @staticmethod
    def read(pid, field):
        return int((harness.proc_status(pid, field) or '0').split()[0])

    def processes(self):
        yield 'broker', self.profd.pid
        for kind, pids in self.profd.helpers().items():
            for pid in pids:
                yield kind, pid
        for pid in self.profd.children_of('files'):
            yield 'files', pid

    def look(self):
        for kind, pid in self.processes():
            self.kinds[pid] = kind
            self.cpu[pid] = max(self.cpu.get(pid, 0),
                                harness.cpu_seconds(pid))
            self.peak[pid] = max(self.peak.get(pid, 0),
                                 self.read(pid, 'VmHWM'))

    def run(self):
        while not self.ended.wait(METER_S):
            self.look()

    def cpu_s(self, kind):
        """Returns the processor time of the processes of this kind."""
        return sum(cpu - self.cpu_before.get(pid, 0) for pid, cpu in
                   list(self.cpu.items()) if self.kinds[pid] == kind)

    def figures(self, kinds):
        """Returns {kind: (processor time in s, peak above the level in MB)}; of
        several processes the sum, and the largest."""
        self.ended.set()
        self.join()
        return {kind: (self.cpu_s(kind), max(
            [(mb - self.before.get(pid, 0)) // 1024 for pid, mb in
             self.peak.items() if self.kinds[pid] == kind], default=0))
            for kind in kinds}


class Bystander:
    """An honest target: two threads that compute in work() and sleep, in turns."""

    def __init__(self, ground, uid):
        self.ground, self.uid = ground, uid
        self.program = ground.box.start(
            [ground.copy('naps', 'work'), 2, 1000, 9000],
            **stranger.options(uid))
        self.program.wait_line('ready')
        self.pid = self.program.pid

    def begin(self, status):
        """Of a bomb."""
        self.since = time.monotonic()
        self.since_unix = time.time()
        self.first = self.window = self.samples(status)
        self.incomplete_s, self.is_complete = 0.0, False

    def samples(self, status):
        """Returns the samples that were taken, and those that were missed."""
        found = status.get(self.pid)
        check(found, f'bystander {self.pid} is not profiled')
        check(found['state'] != 'left_out', f'{found}')
        return found['samples_taken'], found['missed']

    def look(self, status):
        taken, missed = now = self.samples(status)
        taken -= self.window[0]
        missed -= self.window[1]
        if taken + missed < WINDOW:
            return
        self.window = now
        self.is_complete = taken >= COMPLETE * (taken + missed)
        if not self.is_complete:
            self.incomplete_s = time.monotonic() - self.since

    def missed(self):
        """Returns the share of samples that it missed since the bomb."""
        taken, missed = (b - a for a, b in zip(self.first, self.window))
        return missed / max(1, taken + missed)

    def is_named(self):
        """Returns true if work() is in a chunk that ended with the bomb at work."""
        return self.ground.last_of(self.pid, 'work') > \
            self.since_unix + HOLD_S / 2


class Ground:
    """The daemon, a server, the bystanders, and what bombs are made of."""

    def __init__(self, box, rng):
        self.box, self.rng = box, rng
        self.dir = box.make_dir('bombs')
        self.own = stranger.make_dir(box, 'own', ATTACKER)
        self.server = box.server(tls=False)
        self.arrivals = Arrivals(self.server)
        self.arrived = {}
        self.profilers = {}
        self.exit = contextlib.ExitStack()
        self.start()

    # The daemon.

    def start(self):
        path = self.dir / 'profd.conf'
        text = (f'[sentry]\ndsn = http://{KEY}@127.0.0.1:{self.server.port}/'
                f'{PROJECT}\n[profiler]\nchunk_seconds = 1\n')
        for name, keys in {
                'work': {'exe': self.copy('naps', 'work')},
                'rabbits': {'exe': self.copy('bombs', 'rabbits'),
                            'max_instances': 8},
                'comm': {'comm': '*no*such*one*'},
                'title': {'cmdline': '*no*body*has*this*title*'}}.items():
            keys = {'autostart': 'yes', 'profile_session_sample_rate': 1,
                    'min_age_seconds': 0, 'release': f'{name}@1', **keys}
            text += f'[target "{name}"]\n'
            text += ''.join(f'{k} = {v}\n' for k, v in keys.items())
        path.write_text(text)
        path.chmod(0o600)
        self.socket = self.dir / 'socket'
        self.profd = self.box.profd([], '--config', path, '--socket',
                                    self.socket, output=False)
        self.log = Log(self.profd)
        self.control = operator(self.box, self.profd, self.socket)
        self.bystanders = [Bystander(self, uid) for uid in (ATTACKER, OTHER, 0)]
        wait_for(lambda: self.read_arrivals() or self.status() and
                 all(self.last_of(b.pid, 'work') for b in self.bystanders),
                 'the first chunks of the bystanders')

    def status(self):
        """Returns {pid: its status}. Only text that no terminal obeys is in it."""
        done = self.control.run('status', '--json')
        check(not CONTROL.search(done.stdout.encode()), f'{done.stdout!r}')
        found = {t['pid']: t for t in json.loads(done.stdout)['targets']}
        for pid, t in found.items():
            if t['profiler_id']:
                self.profilers[t['profiler_id']] = pid
        return found

    def profctl(self, command, program):
        """Attaches or detaches a process. Returns true if that was done."""
        done = subprocess.run(
            [self.control.exe, command, str(program.pid)], check=False,
            capture_output=True, cwd='/', env=harness.environment(
                SENTRY_PROFD_SOCKET=str(self.socket)))
        check(not CONTROL.search(done.stderr), f'{done.stderr}')
        return done.returncode == 0

    def read_arrivals(self):
        """Reads chunks that have come, and removes their files."""
        until = time.monotonic() + READ_S
        for chunk in self.arrivals.chunks():
            self.note_chunk(chunk)
            if time.monotonic() >= until:
                break

    def note_chunk(self, chunk):
        profile = chunk['profile']
        names = {f.get('function') for f in profile['frames']}
        check('SECRET_OF_ROOT' not in names, 'a file of root was read')
        last = max((s['timestamp'] for s in profile['samples']), default=0)
        of = self.arrived.setdefault(chunk['profiler_id'], {})
        of.update(dict.fromkeys(names, last))

    def last_of(self, pid, name):
        """Returns the end of the last chunk of a process with this function."""
        return max((of.get(name, 0) for i, of in self.arrived.items()
                    if self.profilers.get(i) == pid), default=0)

    def check_health(self):
        self.check_log()
        check(self.profd.running(), 'the broker has ended: status '
              f'{self.profd.process.returncode}')

    def check_log(self):
        new = self.log.check_lines()
        check(not CONTROL.search(new) and
              new.decode(errors='replace').encode() == new,
              f'control bytes in the log: {new}')

    # What bombs are made of.

    def exe(self, name):
        """Returns a copy of churn, for its Makers."""
        return self.copy('churn', name)

    def copy(self, target, name):
        """Returns a copy of a program of tests/targets by this name."""
        path = self.dir / name
        if not path.exists():
            shutil.copy(BUILD / 'targets' / target, path)
            path.chmod(0o755)
        return path

    def path(self, name):
        """Returns a path of a new file of the attacker."""
        self.box.n += 1
        return self.own / f'{self.box.n}-{name}'

    def start_bomb(self, *argv, uid=ATTACKER, ready='ready.*', **options):
        """Starts a process of the attacker, by env(1), since the name of the program
        may be none that a report can print."""
        program = self.box.start(
            ['/usr/bin/env', *(os.fsdecode(a) if isinstance(a, bytes) else a
                               for a in argv)], **stranger.options(uid), **options)
        program.wait_line(ready)
        return program

    def bombs(self, *args, **options):
        """Starts tests/targets/bombs.c."""
        return self.start_bomb(self.copy('bombs', 'bombs'), *args, **options)

    def forged(self, sections, how='work', program=None):
        """Starts a copy of bombs with these sections only."""
        path = self.path('forged')
        bomb_files.write(path, program or original(), sections)
        os.chown(path, ATTACKER, ATTACKER)
        return self.start_bomb(path, how)

    def perf_map(self, program):
        """Returns the path of the perf map of a process, removed after the bomb."""
        path = pathlib.Path(f'/tmp/perf-{program.pid}.map')
        self.exit.callback(path.unlink, missing_ok=True)
        return path

    def jit(self):
        """Starts jit; returns it with the text of its perf map."""
        program = self.start_bomb(self.copy('jit', 'jit'), '-')
        lines = [line.removeprefix('map ') for line in
                 program.stdout.splitlines() if line.startswith('map ')]
        return program, '\n'.join(lines) + '\n'


@functools.cache
def original():
    return (BUILD / 'targets/bombs').read_bytes()


@functools.cache
def address_of(name):
    """Returns the start and the size of a function of tests/targets/bombs.c."""
    return next((start, size) for start, size, found in
                elf.Elf(original()).symbols if found == name)
