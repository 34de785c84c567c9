"""What the integration tests have in common.

A test is a function test_NAME(box); a file of them ends with

    if __name__ == '__main__':
        harness.main(globals())

which runs them in order (or those whose names are given), prints a line for
each and exits with 0, 1 or, where all that ran were skipped, 77. A test fails
by an exception; check() raises one.

The box has a directory of its own and ends all that was started through it,
on every path: also when the test fails or is told to end. What the daemon
leaves behind is a failure of the test: the harness adopts orphans (it is their
subreaper), so it sees them.

Executables are taken from the directory $BUILD (default: build).
"""

import contextlib
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

import chunk_rules
import envelopes
import server as envelope_server

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(ROOT, os.environ.get('BUILD', 'build'))

# What takes longer than this hangs. A virtual machine may be left with a twentieth
# of its processors for minutes: no test says how fast something has to be.
PATIENCE_S = 240
POLL_S = 0.005

# A test's environment must not be that of who runs it.
FOREIGN = re.compile('SENTRY_.*|.*_proxy|.*_PROXY|SSL_CERT_.*|DEBUGINFOD_.*')

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
libc = ctypes.CDLL(None, use_errno=True)


class Failure(Exception):
    """The test does not hold; the text says why."""


class Skip(Exception):
    """The test cannot run here; the text says why."""


def check(condition, text):
    if not condition:
        raise Failure(text)


def wait_for(condition, what, timeout=PATIENCE_S):
    """Asks condition() again and again; returns its first true value."""
    deadline = time.monotonic() + timeout
    while True:
        asked = time.monotonic()
        value = condition()
        now = time.monotonic()
        if value:
            return value
        if now > deadline:
            raise Failure(f'waited {timeout} s in vain: {what}')
        # What is waited for needs the processors more than who asks.
        time.sleep(max(POLL_S, now - asked))


def in_turns(attempt, turns=5):
    """attempt() gives a list of what took too long, or came too rarely. That is
    not so in every turn if it is because somebody else had the processors. What
    it raises holds in each of them.
    """
    for _ in range(turns):
        found = attempt()
        if not found:
            return
    raise Failure(f'in each of {turns} turns; in the last: {found}')


def stretch():
    """How many times longer than it should something takes that only needs a
    processor, here and now."""
    began, used = time.monotonic(), time.process_time()
    while time.process_time() < used + 0.1:
        pass
    return max(1, (time.monotonic() - began) / 0.1)


held = []


def free_port():
    """A port on loopback on which nobody listens but who is told of it.

    It stays bound to a socket that does not listen, until the test's end: so the
    kernel gives it to nobody else, not even as the near end of a connection. Who
    binds to it needs SO_REUSEADDR, as every server has it.
    """
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(('127.0.0.1', 0))
    held.append(s)
    return s.getsockname()[1]


def environment(**extra):
    """This process's without what a test must not depend on, and extra."""
    env = {k: v for k, v in os.environ.items() if not FOREIGN.fullmatch(k)}
    env.update(extra)
    return env


# /proc. Processes and threads may end at any time: then there is nothing.

def proc_text(pid, name):
    try:
        return pathlib.Path(f'/proc/{pid}/{name}').read_text(errors='replace')
    except OSError:
        return ''


def proc_status(pid, field):
    """A field of /proc/PID/status as text, '' if there is no such process."""
    found = re.search(rf'^{field}:[ \t]*(.*)$', proc_text(pid, 'status'), re.M)
    return found[1] if found else ''


def tracer(pid):
    """The pid that traces pid, 0: nobody."""
    return int(proc_status(pid, 'TracerPid') or 0)


def state(pid):
    """R, S, D, T, t, Z, or '' for no such process."""
    return proc_status(pid, 'State')[:1]


def threads(pid):
    try:
        return sorted(int(t) for t in os.listdir(f'/proc/{pid}/task'))
    except OSError:
        return []


def exe_name(pid):
    """Its executable's name; of a process that only root may look at the first
    15 bytes."""
    try:
        return os.path.basename(os.readlink(f'/proc/{pid}/exe'))
    except OSError:
        return proc_text(pid, 'comm').rstrip('\n')


def children(pid):
    """The pids of a process's living children."""
    found = []
    for tid in threads(pid):
        found += map(int, proc_text(pid, f'task/{tid}/children').split())
    return sorted(c for c in found if state(c) not in ('', 'Z'))


# read, poll, nanosleep, futex, clock_nanosleep, and restart_syscall for those
# of them that were stopped, of 64-bit x86.
WAITS = ('0', '7', '35', '202', '230', '219')


def blocked(tid):
    """Does it wait in one of these calls? Not for a page, nor for a lock of the
    kernel's on its way there."""
    return proc_text(tid, 'syscall').split()[:1] in [[call] for call in WAITS]


def descriptors(pid):
    """{number: what it leads to}; sockets and pipes without their inode."""
    found = {}
    for number in os.listdir(f'/proc/{pid}/fd'):
        # It may be closed just now.
        with contextlib.suppress(FileNotFoundError):
            link = os.readlink(f'/proc/{pid}/fd/{number}')
            found[int(number)] = re.sub(r':\[\d+\]$', '', link)
    return found


def cpu_seconds(pid):
    """Processor time that a process has used, over all its threads."""
    fields = proc_text(pid, 'stat').rpartition(')')[2].split()
    if not fields:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def wait_work(pid, seconds):
    """Waits until a process has used so much more processor time: what it does
    in that is seen, however little of a processor it is given."""
    goal = cpu_seconds(pid) + seconds
    wait_for(lambda: cpu_seconds(pid) >= goal, f'{seconds} s of work')


class Program:
    """A process that a test started; its output goes into files."""

    def __init__(self, argv, path, env=None, **options):
        self.name = os.path.basename(str(argv[0]))
        self.out_path = path.with_suffix('.stdout')
        self.err_path = path.with_suffix('.stderr')
        with open(self.out_path, 'wb') as out, \
                open(self.err_path, 'wb') as err:
            self.process = subprocess.Popen(
                [str(a) for a in argv], stdout=out, stderr=err,
                stdin=options.pop('stdin', subprocess.DEVNULL),
                env=environment() if env is None else env,
                preexec_fn=die_with_parent, **options)
        self.pid = self.process.pid
        self.killed = False

    @property
    def stdout(self):
        return self.out_path.read_text(errors='replace')

    @property
    def stderr(self):
        return self.err_path.read_text(errors='replace')

    def running(self):
        return self.process.poll() is None

    def wait(self, timeout=PATIENCE_S):
        """Its exit status, negative for a signal's."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise Failure(f'{self.name} does not end') from None

    def signal(self, number):
        self.process.send_signal(number)

    def wait_line(self, pattern):
        """Waits for a whole line of its stdout; returns the match."""
        def look():
            ended = not self.running()
            text = self.stdout
            found = re.search(rf'^(?:{pattern})$',
                              text[:text.rfind('\n') + 1], re.M)
            if not found and ended:
                raise Failure(f'{self.name} ended without "{pattern}": '
                              f'{self.stdout}{self.stderr}')
            return found
        return wait_for(look, f'"{pattern}" from {self.name}')

    def end(self):
        """Ends it if it still runs."""
        self.killed = self.running()
        if self.killed:
            self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(PATIENCE_S)
        if self.process.stdin:
            self.process.stdin.close()

    def report(self):
        how = 'ran on' if self.killed else \
            f'status {self.process.returncode}'
        text = f'--- {self.name} ({self.pid}): {how}\n'
        for path in (self.out_path, self.err_path):
            with contextlib.suppress(OSError):
                text += path.read_text(errors='replace')[-4000:]
        return text


def die_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class Envelope:
    """One that was written or received. header, item and chunk are parsed."""

    def __init__(self, data, where):
        self.data = data
        self.where = where
        self.header, self.items = envelopes.read_envelope(data)
        chunks = [i for i in self.items if i[0]['type'] == 'profile_chunk']
        self.item, self.payload = chunks[0] if chunks else (None, None)
        self.chunk = chunk_rules.load(self.payload) if chunks else None


class Profd(Program):
    """sentry-profd. stats and envelopes are there once it has ended."""

    def __init__(self, argv, path, pids, stats_path, output, **options):
        self.started = time.monotonic()
        super().__init__(argv, path, **options)
        self.pids = pids
        self.stats_path = stats_path
        self.output = output

    @property
    def stats(self):
        return json.loads(self.stats_path.read_text())

    @property
    def envelopes(self):
        """What is in --output, in the order of sequence numbers."""
        return [Envelope(p.read_bytes(), p.name)
                for p in sorted(self.output.glob('*.envelope'))]

    @property
    def chunks(self):
        return [e.chunk for e in self.envelopes]

    def wait_chunks(self, n=1):
        """Waits until there are so many more than now."""
        def written():
            return len(list(self.output.glob('*.envelope')))
        n += written()
        wait_for(lambda: written() >= n, f'{n} chunks')

    def report(self):
        text = super().report()
        with contextlib.suppress(OSError, ValueError):
            text += f'--- its figures: {self.stats}\n'
        return text

    def helpers(self):
        """Its living children: {'capture': [pid], 'unwind': [...], ...}."""
        found = {'capture': [], 'unwind': [], 'ship': []}
        for pid in children(self.pid):
            for kind in found:
                if f'sentry-profd-{kind}'[:15] == exe_name(pid)[:15]:
                    found[kind].append(pid)
        return found

    def wait_attached(self):
        """Waits until capture traces every thread of the targets."""
        def attached():
            if not self.running():
                raise Failure(f'{self.name} ended: {self.stderr}')
            capture = self.helpers()['capture']
            tids = [tid for pid in self.pids for tid in threads(pid)]
            return tids and all(tracer(tid) in capture for tid in tids)
        wait_for(attached, 'capture traces the target')
        return self

    def wait_looks(self, n=60):
        """Waits until capture has looked so often: it sleeps until the next
        tick, or until a thread has stopped."""
        def looks(pid):
            return int(proc_status(pid, 'voluntary_ctxt_switches') or 0)
        capture, = self.helpers()['capture']
        goal = looks(capture) + n
        wait_for(lambda: looks(capture) >= goal, f'{n} looks of capture')
        return self

    def finish(self, status=0, timeout=PATIENCE_S):
        """Waits for its end with this status. It has lived for lived_s then: no
        thread has more time in its chunks, however late capture was told of the
        end that duration_s is measured up to."""
        ended = self.wait(timeout)
        self.lived_s = time.monotonic() - self.started
        check(ended == status, f'exit status {ended}, not {status}: '
                               f'{self.stderr}')
        return self

    def interrupt(self, number=signal.SIGINT):
        self.signal(number)
        return self.finish()


class Server:
    """tests/integration/server.py in a process of its own."""

    def __init__(self, box, tls=True, script=None, status=200, names=(),
                 port=0, expired=False, mutual=False, host=None):
        self.dir = box.make_dir('server')
        argv = [sys.executable, ROOT / 'tests/integration/server.py',
                '--dir', self.dir, '--port', port, '--status', status,
                '--stdin']
        if tls:
            argv.append('--tls')
        if expired:
            argv.append('--expired')
        if mutual:
            argv.append('--mutual')
        if host:
            argv += ['--host', host]
        for name in names:
            argv += ['--name', name]
        if script:
            path = self.dir / 'script'
            path.write_text(''.join(json.dumps(s) + '\n' for s in script))
            argv += ['--script', path]
        self.program = box.start(argv, stdin=subprocess.PIPE)
        said = json.loads(self.program.wait_line(r'\{.*\}')[0])
        self.port = said['port']
        self.dsn = said['dsn']
        self.ca = said.get('ca')

    @property
    def env(self):
        """The environment in which its authority is trusted."""
        return environment(SSL_CERT_FILE=self.ca)

    def tell(self, **command):
        """One of server.py's commands; returns when it is obeyed."""
        said = self.program.stdout.count('ok\n')
        stdin = self.program.process.stdin
        stdin.write(json.dumps(command).encode() + b'\n')
        stdin.flush()
        wait_for(lambda: self.program.stdout.count('ok\n') > said,
                 'the server obeys')

    def down(self):
        self.tell(do='down')

    def up(self):
        self.tell(do='up')

    @property
    def requests(self):
        return envelope_server.requests(self.dir)

    @property
    def received(self):
        """The requests that brought an envelope."""
        return [r for r in self.requests if r.get('envelope')]

    def all_envelopes(self):
        return [Envelope((self.dir / r['envelope']).read_bytes(),
                         r['envelope']) for r in self.received]

    @property
    def envelopes(self):
        """Those with a chunk: a report of what was lost may come alone."""
        return [e for e in self.all_envelopes() if e.chunk]

    @property
    def chunks(self):
        return [e.chunk for e in self.envelopes]

    @property
    def reported(self):
        """What client reports told of, {reason: quantity}, whatever became of
        them."""
        sums = {}
        for e in self.all_envelopes():
            for item, payload in e.items:
                if item['type'] != 'client_report':
                    continue
                for lost in json.loads(payload)['discarded_events']:
                    check(lost['category'] == 'profile_chunk', f'{lost}')
                    sums[lost['reason']] = \
                        sums.get(lost['reason'], 0) + lost['quantity']
        return sums

    def check_requests(self):
        """There were some, and nothing was wrong with them."""
        check(self.requests, 'the server was sent nothing')
        for r in self.requests:
            check('tls_error' not in r, f'TLS: {r.get("tls_error")}')
            check(r['problems'] == [], f'request {r["n"]}: {r["problems"]}')


class Box:
    """A directory, and the programs that one test started."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix='profd-test.'))
        # Other users' programs are started in it too.
        self.dir.chmod(0o755)
        self.programs = []
        self.n = 0

    def make_dir(self, name):
        self.n += 1
        path = self.dir / f'{self.n}-{name}'
        path.mkdir()
        return path

    def start(self, argv, cls=Program, **options):
        """Starts a program; options go to subprocess.Popen."""
        self.n += 1
        name = f'{self.n}-{os.path.basename(str(argv[0]))}'
        program = cls(argv, self.dir / name, **options)
        self.programs.append(program)
        return program

    def target(self, name, *args, **options):
        """Starts a program of tests/targets/ and waits for its "ready"."""
        program = self.start([BUILD / 'targets' / name, *args], **options)
        program.wait_line('ready.*')
        return program

    def profd(self, targets, *args, output=True, exe=None, wrapper=(),
              directory=None, **options):
        """Starts sentry-profd on targets: programs or pids.

        With output a new directory is --output. Always with --stats, and
        without the table unless table=True. wrapper: a command that executes
        its arguments. directory: for what it writes.
        """
        pids = [getattr(t, 'pid', t) for t in targets]
        directory = directory or self.make_dir('profd')
        argv = [*wrapper, exe or BUILD / 'sentry-profd']
        for pid in pids:
            argv += ['--pid', pid]
        if output is True:
            output = directory / 'output'
        if output:
            argv += ['--output', output]
        if not options.pop('table', False):
            argv.append('--quiet')
        stats = directory / 'stats.json'
        # Tests that want fewer samples on a slow machine say so.
        if '--cpu-budget' not in args:
            argv += ['--cpu-budget', '0']
        # The machine's own has chunks of other servers.
        if '--spool' not in args:
            argv += ['--spool', 'none']
        if '--shutdown-timeout' not in args:
            argv += ['--shutdown-timeout', PATIENCE_S]
        argv += ['--stats', stats, *args]
        return self.start(argv, cls=Profd, pids=pids, stats_path=stats,
                          output=output or directory, **options)

    def profile(self, targets, *args, work=0.0, **options):
        """A run of sentry-profd that is over when it has seen something: the
        same on a machine of any speed. work: seconds that each of the targets
        has used a processor for, while it was profiled."""
        profd = self.profd(targets, *args, **options).wait_attached()
        goals = {pid: cpu_seconds(pid) + work for pid in profd.pids}
        profd.wait_looks()
        wait_for(lambda: all(cpu_seconds(pid) >= goal
                             for pid, goal in goals.items()),
                 f'{work} s of work')
        return profd.interrupt()

    def server(self, **options):
        return Server(self, **options)

    def end(self):
        """Ends all; returns what was left behind, as text."""
        for program in reversed(self.programs):
            program.end()
        while held:
            held.pop().close()
        left = end_orphans()
        return ', '.join(left)

    def report(self):
        return ''.join(p.report() for p in self.programs)

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)


def end_orphans():
    """Ends what the daemon left behind; returns what it was. The broker's helpers
    end by themselves when it is gone, but not at once.
    """
    deadline = time.monotonic() + PATIENCE_S
    while True:
        reap()
        alive = children(os.getpid())
        if not alive:
            return []
        if time.monotonic() > deadline:
            break
        time.sleep(POLL_S)
    names = [f'{exe_name(pid)} ({pid}, {state(pid)})' for pid in alive]
    for pid in alive:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return names


def reap():
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass


def run_test(name, function):
    """Runs one; returns 'ok', 'skip' or 'FAIL'."""
    box = Box()
    start = time.monotonic()
    word, text, details = 'ok', '', ''
    try:
        function(box)
    except Skip as e:
        word, text = 'skip', str(e)
    except Failure as e:
        word, text = 'FAIL', str(e)
        details = ''.join(traceback.format_tb(e.__traceback__))
    except Exception as e:
        word, text = 'FAIL', f'{type(e).__name__}: {e}'
        details = traceback.format_exc()
    finally:
        left = box.end()
        if left and word == 'ok':
            word, text = 'FAIL', f'left behind: {left}'
        report = box.report()
        box.remove()
    seconds = time.monotonic() - start
    print(f'{word:5} {name} ({seconds:.1f} s)' + (f': {text}' if text else ''),
          flush=True)
    if word == 'FAIL':
        print(details + report, flush=True)
    return word


def main(names):
    """Runs the tests among names, a module's globals()."""
    # An exception ends what was started; the default action would not.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda n, _: sys.exit(128 + n))
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if not (BUILD / 'sentry-profd').exists():
        sys.exit(f'{BUILD}/sentry-profd is not there: make, or set BUILD')
    wanted = [a if a.startswith('test_') else 'test_' + a
              for a in sys.argv[1:]]
    tests = {n: f for n, f in names.items()
             if n.startswith('test_') and callable(f)}
    unknown = set(wanted) - set(tests)
    if unknown:
        sys.exit(f'no such test: {", ".join(sorted(unknown))}')
    words = [run_test(n, f) for n, f in tests.items()
             if not wanted or n in wanted]
    if 'FAIL' in words:
        sys.exit(1)
    sys.exit(77 if words and set(words) == {'skip'} else 0)
