"""Programs that a test starts: any program, sentry-profd, and the server that
receives its envelopes.
"""

import contextlib
import ctypes
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import chunk_rules
import envelopes
import server as envelope_server
from patience import PATIENCE_S, Failure, check, wait_for
from proc import children, exe_name, proc_status, threads, tracer

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(ROOT, os.environ.get('BUILD', 'build'))

# Variables of the environment in which the tests run that could change a
# result.
FOREIGN = re.compile('SENTRY_.*|.*_proxy|.*_PROXY|SSL_CERT_.*|DEBUGINFOD_.*')
OWN = {}

PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None, use_errno=True)


def environment(**extra):
    """Returns this process's environment without these variables, and with
    extra."""
    env = {k: v for k, v in os.environ.items() if not FOREIGN.fullmatch(k)}
    env.update(OWN)
    env.update(extra)
    return env


def filters_kill():
    """Called by a module: a process of sentry-profd that makes a call which
    its filter does not allow is killed, which fails the test."""
    OWN['SENTRY_PROFD_SECCOMP_KILL'] = '1'


class Program:
    """A process that a test started. Its output goes to files."""

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
        """Waits for its end; returns its exit status, negative for a signal.
        """
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
        """Ends the process if it still runs."""
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
    """An envelope that was written or received. header, item and chunk are
    parsed."""

    def __init__(self, data, where):
        self.data = data
        self.where = where
        self.header, self.items = envelopes.read_envelope(data)
        chunks = [i for i in self.items if i[0]['type'] == 'profile_chunk']
        self.item, self.payload = chunks[0] if chunks else (None, None)
        self.chunk = chunk_rules.load(self.payload) if chunks else None

    @property
    def for_server(self):
        """Returns the payload that the server would get, if this one is from a
        file."""
        return envelopes.for_server(self.payload)

    def is_sent_as(self, sent):
        """Returns True if the server got this chunk of a file in the envelope sent."""
        return sent.payload == envelopes.for_server(self.payload,
                                                    sent.chunk['profile']['samples'])


# sentry-profd's exit status if all chunks of a run were lost.
ALL_LOST = 3


class Profd(Program):
    """A sentry-profd. stats and envelopes are valid after its end."""

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
        """Returns the envelopes in --output, in the order of sequence numbers."""
        return [Envelope(p.read_bytes(), p.name)
                for p in sorted(self.output.glob('*.envelope'))]

    @property
    def chunks(self):
        return [e.chunk for e in self.envelopes]

    def wait_chunks(self, n=1):
        """Waits until there are this many more chunks than now."""
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
        """Returns its living children: {'capture': [pid], 'unwind': [...],
        ...}."""
        found = {'capture': [], 'unwind': [], 'ship': []}
        for pid in children(self.pid):
            for kind in found:
                if f'sentry-profd-{kind}'[:15] == exe_name(pid)[:15]:
                    found[kind].append(pid)
        return found

    def children_of(self, kind):
        """Returns the children of one kind; 'files': those that open files for
        the broker."""
        if kind != 'files':
            return self.helpers()[kind]
        return [p for p in children(self.pid) if exe_name(p) == 'sentry-profd']

    def wait_attached(self):
        """Waits until capture traces every thread of the targets. With --sampler perf it traces
        none: its looks at them show that it has begun."""
        if 'perf' in self.process.args:
            wait_for(lambda: not self.running() or self.helpers()['capture'], 'capture')
            return self.wait_looks()

        def attached():
            if not self.running():
                raise Failure(f'{self.name} ended: {self.stderr}')
            capture = self.helpers()['capture']
            tids = [tid for pid in self.pids for tid in threads(pid)]
            return tids and all(tracer(tid) in capture for tid in tids)
        wait_for(attached, 'capture traces the target')
        return self

    def wait_looks(self, n=60):
        """Waits until capture has looked at the targets this many times: it
        sleeps until the next tick, or until a thread has stopped."""
        def looks(pid):
            return sum(int(proc_status(tid, 'voluntary_ctxt_switches') or 0)
                       for tid in threads(pid))
        capture, = self.helpers()['capture']
        goal = looks(capture) + n
        wait_for(lambda: looks(capture) >= goal, f'{n} looks of capture')
        return self

    def finish(self, status=0, timeout=PATIENCE_S):
        """Waits until it has ended with this status, and sets lived_s to the seconds from
        its start to its end. No thread has more time in the chunks, even if capture
        stopped later than --duration says."""
        ended = self.wait(timeout)
        self.lived_s = time.monotonic() - self.started
        check(ended == status, f'exit status {ended}, not {status}: '
                               f'{self.stderr}')
        return self

    def interrupt(self, number=signal.SIGINT, status=0):
        self.signal(number)
        return self.finish(status)


class Server:
    """tests/integration/server.py in a process of its own."""

    def __init__(self, box, tls=True, script=None, status=200, names=(),
                 port=0, expired=False, mutual=False, host=None,
                 for_files=False, spotlight=False):
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
        if for_files:
            argv.append('--for-files')
        if spotlight:
            argv.append('--spotlight')
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
        self.url = said['url']
        self.ca = said.get('ca')

    @property
    def env(self):
        """Returns an environment in which the server's authority is trusted."""
        return environment(SSL_CERT_FILE=self.ca)

    def tell(self, **command):
        """Sends a command to server.py; returns when it is carried out."""
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
        """Returns the requests that had an envelope."""
        return [r for r in self.requests if r.get('envelope')]

    def all_envelopes(self):
        return [Envelope((self.dir / r['envelope']).read_bytes(),
                         r['envelope']) for r in self.received]

    @property
    def envelopes(self):
        """Returns the envelopes with a chunk. A client report may come alone.
        """
        return [e for e in self.all_envelopes() if e.chunk]

    @property
    def chunks(self):
        return [e.chunk for e in self.envelopes]

    @property
    def losses(self):
        """Returns the losses in client reports, {category: {reason:
        quantity}}, whatever became of the reports."""
        sums = {}
        for e in self.all_envelopes():
            for item, payload in e.items:
                if item['type'] != 'client_report':
                    continue
                for lost in json.loads(payload)['discarded_events']:
                    of = sums.setdefault(lost['category'], {})
                    of[lost['reason']] = \
                        of.get(lost['reason'], 0) + lost['quantity']
        return sums

    @property
    def reported(self):
        """Returns the losses of chunks, {reason: quantity}."""
        losses = self.losses
        check(set(losses) <= {'profile_chunk'}, f'{losses}')
        return losses.get('profile_chunk', {})

    def check_requests(self):
        """Checks that there were requests, and that none had a problem."""
        check(self.requests, 'the server was sent nothing')
        for r in self.requests:
            check('tls_error' not in r, f'TLS: {r.get("tls_error")}')
            check(r['problems'] == [], f'request {r["n"]}: {r["problems"]}')
