"""Measures how much slower PostgreSQL, nginx and redis-server answer while they are
profiled, at 101 Hz and without a CPU budget. Loads without a profiler, with the daemon and
with perf take turns, so that a machine that gets slower affects all equally. Before each
load that counts there is a short one: the start of a profiler, and the first stacks of a
program, happen once.

The servers are those that Debian packages. tests/tools/deps.sh only unpacks PostgreSQL and
nginx, because their packages would start them.
"""

import contextlib
import pathlib
import re
import shutil
import signal
import subprocess
import time
from statistics import median, quantiles

import harness
import report
import services
import stranger
import variants

NAME = 'servers'
ROUNDS = 10
SECONDS = 4
WARM_S = 1
RATE_HZ = 101
CLIENTS = 4
# The user nobody: initdb wants a user that has an account.
UID = 65534
# Rows of pgbench: with 1,000,000 in a table, all of them are in memory.
SCALE = 10

DEBIAN = harness.BUILD.resolve() / 'debian'
PROGRAMS = ('/usr/sbin', '/usr/bin', '/usr/lib/postgresql/15/bin')

NGINX = services.NGINX_BEGIN + '''
    server {{
        listen 127.0.0.1:{port};
        location / {{ root {dir}/www; }}
    }}
}}
'''


class Missing(Exception):
    """A program is not installed. The text names it."""


def find(name):
    """Returns the path of a program of Debian, installed or unpacked."""
    for root in ('', DEBIAN):
        for place in PROGRAMS:
            path = pathlib.Path(f'{root}{place}/{name}')
            if path.exists():
                return path
    raise Missing(name)


def find_postgres(box):
    """Returns the directory of PostgreSQL's programs. Unpacked ones are copied, because
    their user may not be able to read $BUILD."""
    found = find('postgres').parent
    if not found.is_relative_to(DEBIAN):
        return found
    place = box.make_dir('debian')
    for part in ('usr/lib/postgresql', 'usr/share/postgresql'):
        shutil.copytree(DEBIAN / part, place / part, symlinks=True)
    return place / found.relative_to(DEBIAN)


def output(argv, cwd='/', **options):
    done = subprocess.run([str(a) for a in argv], cwd=cwd, capture_output=True,
                          text=True, **options)
    harness.check(done.returncode == 0, f'{argv[0]}: {done.stderr}')
    return done.stdout


class Postgres:
    """A server of PostgreSQL with the tables of pgbench. options: those of pgbench that
    choose the transaction."""

    def __init__(self, box, options, smoke):
        self.options = options
        self.bin = bin_dir = find_postgres(box)
        self.pgbench = bin_dir / 'pgbench'
        self.dir = stranger.make_dir(box, 'postgres', UID)
        self.user = stranger.options(UID)
        data = self.dir / 'data'
        output([bin_dir / 'initdb', '-U', 'postgres', '-A', 'trust', '-N', data],
               **self.user)
        port = harness.free_port()
        # jit and autovacuum would start at moments of their own.
        self.program = box.start(
            [bin_dir / 'postgres', '-D', data, '-k', self.dir, '-p', port,
             '-c', 'listen_addresses=', '-c', 'jit=off', '-c', 'autovacuum=off'],
            **self.user)
        harness.wait_for(lambda: (self.dir / f'.s.PGSQL.{port}').exists(),
                         'PostgreSQL listens')
        self.to = ['-h', self.dir, '-p', port, '-U', 'postgres', 'postgres']
        harness.wait_for(self.is_up, 'PostgreSQL answers')
        output([self.pgbench, '-i', '-q', '-s', 1 if smoke else SCALE, *self.to],
               **self.user)

    def is_up(self):
        return subprocess.run([self.bin / 'pg_isready', *map(str, self.to[:4])],
                              capture_output=True).returncode == 0

    def pids(self):
        """The processes that serve the clients are forked later (--children)."""
        return [self.program.pid]

    def load(self, seconds):
        said = output([self.pgbench, '-n', *self.options, '-c', CLIENTS, '-T', seconds,
                       '-l', *self.to], cwd=self.dir, **self.user)
        # The third field of a line is the time of a transaction, in us.
        times = []
        for path in self.dir.glob('pgbench_log.*'):
            times += [int(line.split()[2]) for line in path.read_text().splitlines()]
            path.unlink()
        return (float(re.search(r'^tps = ([\d.]+)', said, re.M)[1]),
                quantiles(times, n=100)[98] / 1000)


class Nginx:
    """nginx with a small file, and wrk."""

    def __init__(self, box, _options, _smoke):
        self.wrk = find('wrk')
        place = stranger.make_dir(box, 'nginx', UID)
        (place / 'www').mkdir()
        (place / 'www/text').write_text('nginx, ' * 100)
        self.port = harness.free_port()
        config = place / 'nginx.conf'
        config.write_text(NGINX.format(
            user='', workers=2, dir=place, port=self.port))
        self.program = box.start([find('nginx'), '-c', config, '-e', place / 'error.log'],
                                 **stranger.options(UID))
        harness.wait_for(lambda: len(self.pids()) == 3, 'nginx has its workers')

    def pids(self):
        return [self.program.pid, *harness.children(self.program.pid)]

    def load(self, seconds):
        said = output([self.wrk, '-t', 1, '-c', 16, '-d', f'{seconds}s', '--latency',
                       f'http://127.0.0.1:{self.port}/text'])
        number, unit = re.search(r'^ +99% +([\d.]+)(us|ms|s)$', said, re.M).groups()
        return (float(re.search(r'^Requests/sec: +([\d.]+)', said, re.M)[1]),
                float(number) * {'us': 1e-3, 'ms': 1, 's': 1000}[unit])


class Redis:
    """redis-server and redis-benchmark, which ends after a number of requests."""

    def __init__(self, box, _options, _smoke):
        self.benchmark = find('redis-benchmark')
        self.port = harness.free_port()
        # redis-tools has the server's executable under another name.
        self.program = box.start(
            ['redis-server', '--port', self.port, '--bind', '127.0.0.1', '--save', '',
             '--dir', box.make_dir('redis')], executable=find('redis-check-rdb'))
        harness.wait_for(lambda: self.program.stdout.count('Ready to accept'),
                         'redis-server is ready')
        began = time.monotonic()
        self.ask(20000)
        self.rate = 20000 / (time.monotonic() - began)

    def pids(self):
        return [self.program.pid]

    def ask(self, n):
        return output([self.benchmark, '-p', self.port, '-n', n, '-c', 16, '-t', 'get',
                       '--csv'])

    def load(self, seconds):
        fields = self.ask(int(seconds * self.rate)).splitlines()[-1]
        fields = [float(f) for f in re.findall(r'"([\d.]+)"', fields)]
        # rps, then latencies: mean, min, p50, p95, p99, max.
        return fields[0], fields[5]


# {label: (server, options of its load, least ratio of the throughput, highest of p99)}
LOADS = {
    'pgbench -S': (Postgres, ['-S'], 0.98, 1.10),
    'pgbench (TPC-B)': (Postgres, ['-b', 'tpcb-like'], 0.98, 1.05),
    'nginx, wrk': (Nginx, [], 0.98, 1.10),
    'redis-benchmark': (Redis, [], 0.98, 1.10),
}


@contextlib.contextmanager
def without(_box, _pids):
    yield


@contextlib.contextmanager
def sentry_profd(box, pids):
    daemon = box.profd(pids, '--children', '--rate', RATE_HZ).wait_attached()
    yield
    daemon.interrupt()
    shutil.rmtree(daemon.output, ignore_errors=True)


@contextlib.contextmanager
def perf(box, pids):
    """perf record, which also records the processes that are forked later."""
    program, data = variants.start_perf(box, pids, RATE_HZ)
    yield
    program.signal(signal.SIGINT)
    program.wait()
    shutil.rmtree(data.parent)


PROFILERS = {'without': without, 'sentry-profd': sentry_profd, 'perf': perf}


# One of each server.
SMOKE_LOADS = ('pgbench -S', 'nginx, wrk', 'redis-benchmark')


class Figures(dict):
    """{profiler: [(requests a second, p99 in ms)]}, a tuple for each round."""

    def ratios(self, profiler, field):
        return [p[field] / w[field] for p, w in zip(self[profiler], self['without'])]


def run(box, smoke=False):
    """Returns {label: Figures, or the name of a program that is missing}."""
    seconds = 1 if smoke else SECONDS
    found = {}
    for label in SMOKE_LOADS if smoke else LOADS:
        cls, options, *_ = LOADS[label]
        figures = found[label] = Figures()
        try:
            server = cls(box, options, smoke)
        except Missing as e:
            found[label] = str(e)
            continue
        turns = list(PROFILERS.items())
        for _ in range(1 if smoke else ROUNDS):
            for name, profiled in turns:
                with (contextlib.suppress(variants.Unable),
                      profiled(box, server.pids())):
                    if not smoke:
                        server.load(WARM_S)
                    figures.setdefault(name, []).append(server.load(seconds))
            turns.reverse()
        server.program.signal(signal.SIGINT)
        server.program.wait()
    return found


def spread(values):
    return f'{median(values):.3f} ({min(values):.3f} to {max(values):.3f})'


def wanted(found):
    """Returns requirements as report.requirements()."""
    rows = []
    for label, figures in found.items():
        if isinstance(figures, str):
            continue
        _, _, least, most = LOADS[label]
        rates, delays = (figures.ratios('sentry-profd', field) for field in (0, 1))
        rows.append((f'server: {label}, throughput', f'>= {least:.2f} of without',
                     spread(rates), median(rates) >= least))
        rows.append((f'server: {label}, p99', f'<= {most:.2f} of without',
                     spread(delays), median(delays) <= most))
    return rows


def text(found):
    rows = []
    for label, figures in found.items():
        if isinstance(figures, str):
            rows.append([label, f'not measured: no {figures}', '', '', '', ''])
            continue
        for name, runs in figures.items():
            cells = [label, name]
            for field, digits in ((0, 0), (1, 2)):
                cells.append(f'{median(r[field] for r in runs):,.{digits}f}')
                cells.append('' if name == 'without' else
                             spread(figures.ratios(name, field)))
            rows.append(cells)
    return (f'### Servers (`T={NAME}`)\n\n'
            f'{ROUNDS} rounds; in each a load of {SECONDS} s without a profiler, with '
            'sentry-profd and with perf record, in alternating order. All processes of the '
            f'server are profiled at {RATE_HZ} Hz, by sentry-profd without a CPU budget. '
            'Medians; a ratio compares two loads of a round.\n\n' +
            report.table(['load', 'profiler', 'requests a second', 'times without',
                          'p99, ms', 'times without'], rows))
