"""Another user attacks the daemon's socket (socket_pest.py): by what he sends, by
how many connections he has, by what he does not read, by descriptors that he passes,
and by when his processes die.

Meanwhile root's `sentry-profctl status` is answered within a bound, a process of a
third user starts and stops its profiler by libsentry_profd and gets a profile each
time, and a process of root's is profiled without a gap. The user must get no right on
their processes, and no word about them. A process that gets the pid of a client that
has died is not taken for it.

In the middle (not in the short form) and at the end the attackers rest, and the broker has
as much memory and as many descriptors as at the start.
"""

import collections
import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import time

import harness
import sanitized
import stranger
from account import check_sums
from envelopes import KEY
from harness import BUILD, ROOT, Failure, check, wait_for
from socket_pest import ATTACKS, SPANS_OPEN, START, STOP
from upkeep import Log, Watch, check_restarts, operator, resident_mb, wait_flat

SHORT_S = 4

CLIENT_UID, PEST_UID = stranger.UID + 1, stranger.UID
# Attacks that use up what a user may have are made by other users, so that the rest
# gets through.
GREEDY = {'waves': 2, 'flood': 2, 'slow': 3, 'fork_storm': 3, 'garbage': 3,
          'becomes_root': 4, 'speaks_for_root': 4, 'descriptors': 5}
RATE_HZ, CHUNK_S = 101, 1
# Of root's process.
THREADS = 2
# The program of a third user, which calls the function that each line names.
CLIENT = '''
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.sentry_profd_connect(None)
library.sentry_profd_wait(240000)
print('ready', flush=True)
for line in sys.stdin:
    getattr(library, 'sentry_profd_' + line.strip())()
'''

# The longest that root waits for the status: the machine may be busy.
ANSWER_S = 30
# The sanitizer keeps what was freed: up to 256 MB (quarantine_size_mb).
MEMORY_MB = 300 if sanitized.is_sanitized() else 8
DESCRIPTORS = 8

# Starts a program with a given pid, by clone3(2), which is 435; prints the pid, and
# dies with its parent.
WITH_PID = '''
import ctypes, os, struct, sys
libc = ctypes.CDLL(None)
pid = ctypes.c_int(int(sys.argv[1]))
args = struct.pack('=11Q', 0, 0, 0, 0, 17, 0, 0, 0, ctypes.addressof(pid), 1, 0)
got = libc.syscall(435, args, len(args))
if got == 0:
    libc.prctl(1, 9, 0, 0, 0)
    os.execv(sys.argv[2], sys.argv[2:])
print('pid', got, flush=True)
os.waitpid(got, 0)
'''


class Storm:
    def __init__(self, box, rng):
        self.box, self.rng = box, rng
        self.figures = collections.Counter()
        self.dir = box.make_dir('storm')
        self.dir.chmod(0o755)
        self.path, self.socket = self.dir / 'profd.conf', self.dir / 'socket'
        self.server = box.server(tls=False)
        self.pests = []
        self.slowest_s = 0.0
        self.seen = set()
        self.start()

    # The processes.

    def copy(self, source, name, mode=0o755):
        path = self.dir / name
        path.write_bytes(source.read_bytes())
        path.chmod(mode)
        return path

    def start(self):
        sleeps = BUILD / 'targets/unw_o2'
        self.victim = self.copy(sleeps, 'victim')
        self.own = self.copy(sleeps, 'own')
        self.suid = self.copy(BUILD / 'targets/shares', 'suid', 0o4755)
        self.pest = self.copy(ROOT / 'tests/storm/socket_pest.py', 'socket_pest.py')
        library = self.copy(BUILD / 'libsentry_profd.so', 'libsentry_profd.so')
        naps = self.copy(BUILD / 'targets/naps', 'roots')
        self.write(naps)
        # Its limit of descriptors is the same on each machine.
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(16384, limits[1]), limits[1]))
        self.profd = self.box.profd([], '--config', self.path, '--socket', self.socket,
                                    output=False)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        self.control = operator(self.box, self.profd, self.socket)
        self.log = Log(self.profd)
        self.roots = self.box.start([naps, THREADS, 300, 9700])
        self.client = self.box.start(
            ['/usr/bin/python3', '-c', CLIENT, library], stdin=subprocess.PIPE,
            env=harness.environment(SENTRY_PROFD_SOCKET=str(self.socket)),
            **stranger.options(CLIENT_UID))
        self.client.wait_line('ready')
        self.sleepers = [self.box.start([self.own, 'nanosleep'],
                                        **stranger.options(PEST_UID)) for _ in range(2)]
        found = self.control.wait_state(self.roots.pid, 'profiling')
        self.roots_id = found['profiler_id']
        self.wait_client('stopped')

    def write(self, naps):
        python = os.path.realpath('/usr/bin/python3')
        sections = {
            'roots': f'exe = {naps}\nautostart = yes',
            'victim': f'exe = {self.victim}\nautostart = no',
            'client': f'exe = {python}\nuser = {CLIENT_UID}\nautostart = no'}
        text = (f'[sentry]\ndsn = {self.server.dsn}\nuser_attach = send\n[profiler]\n'
                f'chunk_seconds = {CHUNK_S}\nrate_hz = {RATE_HZ}\n')
        for name, keys in sections.items():
            text += (f'[target "{name}"]\n{keys}\nprofile_session_sample_rate = 1\n'
                     'min_age_seconds = 0\n')
        self.path.write_text(text)
        self.path.chmod(0o600)

    def facts(self, **more):
        helpers = self.profd.helpers()
        return json.dumps({
            'socket': str(self.socket), 'seed': self.rng.random(),
            'own': [p.pid for p in self.sleepers],
            'others': [self.roots.pid, self.client.pid, self.profd.pid, 1, os.getpid(),
                       *helpers['capture'], *helpers['unwind'], *helpers['ship']],
            'sections': ['roots', 'client'], 'secrets': [self.roots_id, KEY],
            'fds': self.fds, 'program': str(self.own), 'suid': str(self.suid),
            'hidden': 'busy_seventy', **more})

    fds = ()

    def start_pest(self, attack, **more):
        program = self.box.start(
            ['/usr/bin/python3', self.pest, attack, self.facts(**more)],
            stdin=subprocess.PIPE, pass_fds=self.fds,
            **stranger.options(PEST_UID + GREEDY.get(attack, 0)))
        return program

    def start_pests(self):
        self.pests = [self.start_pest(attack) for attack in ATTACKS]
        for program in self.pests:
            program.wait_line('ready')

    def end_pests(self):
        for program in self.pests:
            program.process.stdin.close()
        for program in self.pests:
            check(program.wait() == 0, program.report())
            self.look_at(program)
            for what, n in json.loads(re.search(r'^did (.*)$', program.stdout,
                                                re.M)[1]).items():
                    self.figures[what] += n
            self.box.programs.remove(program)
        self.pests = []

    @staticmethod
    def look_at(program):
        gained = re.findall(r'^GAINED .*$', program.stdout, re.M)
        check(not gained, f'the user has got what is not his: {gained[:5]}')

    # What has to hold.

    def check_health(self):
        self.log.read()
        for program in self.pests:
            self.look_at(program)

    def ask(self):
        """Asks for the status as root; returns it."""
        began = time.monotonic()
        status = self.control.status()
        took = time.monotonic() - began
        self.slowest_s = max(self.slowest_s, took)
        self.figures['requests of root'] += 1
        check(took < ANSWER_S, f'root has waited {took:.1f} s for the status')
        return {t['pid']: t for t in status['targets']}

    def wait_for(self, condition, what):
        def looked():
            self.check_health()
            return condition()
        return wait_for(looked, what)

    def check_roots(self):
        found = self.ask().get(self.roots.pid)
        check(found and found['state'] == 'profiling' and
              found['profiler_id'] == self.roots_id, f"root's process: {found}")

    # The process of a third user.

    def wait_client(self, state):
        return self.wait_for(
            lambda: (found := self.ask().get(self.client.pid)) and
            found['state'] == state and found, f'the client is {state}')

    def tell_client(self, function):
        self.client.process.stdin.write(f'{function}\n'.encode())
        self.client.process.stdin.flush()

    def chunks_of(self, profiler_id):
        return [c for c in self.server.chunks if c['profiler_id'] == profiler_id]

    def use_library(self):
        """The client starts its profiler, gets a profile, and stops it."""
        began = time.monotonic()
        self.tell_client('start_profiler')
        found = self.wait_client('profiling')
        self.wait_for(lambda: self.chunks_of(found['profiler_id']),
                      "a chunk of the client's")
        self.tell_client('stop_profiler')
        self.wait_client('stopped')
        self.figures['profiles by the library'] += 1
        self.figures['longest of them, s'] = round(max(
            self.figures['longest of them, s'], time.monotonic() - began), 1)

    # A pid that comes again.

    def start_with_pid(self, pid):
        """Starts the victim with this pid; returns the program that starts it, or
        None: another process has the pid."""
        program = self.box.start(['/usr/bin/python3', '-c', WITH_PID, pid, self.victim,
                                  'nanosleep'])
        if int(program.wait_line(r'pid (-?\d+)')[1]) == pid:
            return program
        program.end()
        self.box.programs.remove(program)
        return None

    def reuse_a_pid(self):
        """A client dies, and root's process gets its pid; the client's child then
        speaks on the connection. The broker must not take one for the other."""
        is_frozen = self.rng.random() < 0.5
        last = self.rng.choice((START, STOP, SPANS_OPEN))
        if is_frozen:
            self.profd.signal(signal.SIGSTOP)
        try:
            heir = self.start_pest('heir', is_frozen=is_frozen, last=last)
            pid = int(heir.wait_line(r'gone (\d+)')[1])
            program = self.start_with_pid(pid)
        finally:
            self.profd.signal(signal.SIGCONT)
        try:
            if program:
                self.wait_for(lambda: self.ask().get(pid), 'the victim is known')
                state = self.rng.choice(('stopped', 'profiling'))
                if state == 'profiling':
                    self.control.run('start', pid)
                self.wait_for(lambda: self.ask()[pid]['state'] == state, state)
                wanted = self.ask()[pid]['profiler_id']
                heir.process.stdin.write(b'\n')
                heir.process.stdin.flush()
                check(heir.wait() == 0, heir.report())
                self.look_at(heir)
                found = self.ask()[pid]
                check(found['state'] == state and found['profiler_id'] == wanted,
                      f'a process that has got the pid of a client: {found}')
                self.figures['pids that came again'] += 1
        finally:
            if program:
                program.end()
                self.box.programs.remove(program)
            if heir.running():
                heir.process.stdin.write(b'\n')
                heir.process.stdin.flush()
                heir.wait()
            self.box.programs.remove(heir)

    # Figures.

    def use(self):
        return {'memory of the broker, MB': round(resident_mb(self.profd.pid), 1),
                'descriptors of the broker': len(os.listdir(
                    f'/proc/{self.profd.pid}/fd'))}

    def rest(self, when, before=None):
        """Ends the attackers, and notes what the broker uses."""
        self.end_pests()
        now = wait_flat(self, before or self.use(), MEMORY_MB, DESCRIPTORS)
        for what, n in now.items():
            self.figures[f'{when}: {what}'] = n
        return now

    def storm(self, seconds):
        began, used = time.monotonic(), harness.cpu_seconds(self.profd.pid)
        self.start_pests()
        end = time.monotonic() + seconds
        while True:
            self.check_health()
            self.check_roots()
            self.use_library()
            self.reuse_a_pid()
            check_restarts(self.control)
            self.figures['most descriptors of the broker'] = max(
                self.figures['most descriptors of the broker'],
                self.use()['descriptors of the broker'])
            if time.monotonic() > end:
                break
            time.sleep(self.rng.uniform(0, 0.3))
        used = harness.cpu_seconds(self.profd.pid) - used
        self.figures['processor of the broker, %'] = max(
            self.figures['processor of the broker, %'],
            round(100 * used / (time.monotonic() - began)))

    def end(self):
        self.profd.interrupt(signal.SIGTERM)
        stats = self.profd.stats
        check_sums(stats)
        self.server.check_requests()
        self.figures['slowest answer to root, s'] = round(self.slowest_s, 2)
        self.figures['lines of the log'] = self.log.lines
        self.figures['chunks made'] = stats['chunks']['made']


def run(box, seconds, rng):
    stranger.need_root()
    storm = Storm(box, rng)
    with contextlib.ExitStack() as stack:
        for path in ('/dev/fuse',):
            with contextlib.suppress(OSError):
                fd = os.open(path, os.O_RDWR)
                stack.callback(os.close, fd)
                storm.fds = (fd,)
        try:
            storm.use_library()
            before = storm.rest('start')
            watch = Watch(storm.control, storm.roots.pid, RATE_HZ, THREADS)
            parts = ('middle', 'end') if seconds > SHORT_S else ('end',)
            for when in parts:
                storm.storm(seconds / len(parts))
                storm.rest(when, before)
            storm.use_library()
            watch.check_complete(storm.figures)
            storm.end()
        except (Failure, OSError) as e:
            raise Failure(f'{type(e).__name__}: {e}; after {dict(storm.figures)}') from e
    return storm.figures
