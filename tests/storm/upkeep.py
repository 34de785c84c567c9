"""What storms look at: the log and the memory of the daemon, the chunks that arrive, and
whether one of the daemon's processes had to be started again."""

import collections
import json
import time

import control
import harness
from harness import Envelope, Failure, check, wait_for
from openmetrics import total

CHILDREN = ('capture', 'unwind', 'ship')
REASONS = ('signal', 'status', 'dismissed', 'heartbeat')


# Of the expected samples. A machine that has no processor for the daemon misses samples.
TAKEN_SHARE = 0.3
# The rate of a shorter time says nothing.
RATE_S = 5


def resident_mb(pid):
    return int((harness.proc_status(pid, 'VmRSS') or '0').split()[0]) / 1024


def wait_flat(storm, before, memory_mb, descriptors):
    """Waits until storm.use() is as before, but for this much more: memory in figures
    that are in MB, descriptors in the others. Returns what is used now."""
    now = {}

    def flat():
        now.update(storm.use())
        return all(now[w] <= n + (memory_mb if 'MB' in w else descriptors)
                   for w, n in before.items())
    try:
        storm.wait_for(flat, 'memory and descriptors as before')
    except Failure as e:
        open_now = collections.Counter(harness.descriptors(storm.profd.pid).values())
        raise Failure(f'{e}: {now}, before: {before}; the broker has open: '
                      f'{open_now.most_common(8)}') from None
    return now


class Watch:
    """The samples of a bystander, from now on."""

    def __init__(self, operator, pid, rate_hz, threads):
        self.operator, self.pid = operator, pid
        self.rate_hz, self.threads = rate_hz, threads
        self.before = self.samples()

    def samples(self):
        found = self.operator.target(self.pid)
        return time.monotonic(), found['samples_taken'], found['missed']

    def check_complete(self, figures):
        """Checks that each thread has samples at the rate, and that enough were taken."""
        seconds, taken, missed = (b - a for a, b in zip(self.before, self.samples()))
        rate = (taken + missed) / seconds / self.threads
        figures['samples a second of a thread of the bystander'] = round(rate, 1)
        figures['of these taken, %'] = round(100 * taken / (taken + missed), 1)
        check(seconds < RATE_S or 0.5 * self.rate_hz < rate < 1.2 * self.rate_hz and
              taken >= TAKEN_SHARE * (taken + missed),
              f'the bystander has {taken} samples, and {missed} missed ones, in '
              f'{seconds:.1f} s')
        check(harness.tracer(self.pid), 'the bystander is not profiled')


class Log:
    """The new lines of the daemon's log, those of its children included."""

    def __init__(self, profd):
        self.profd, self.at, self.lines = profd, 0, 0

    def new_lines(self):
        """Returns the whole lines since the last call."""
        with open(self.profd.err_path, 'rb') as file:
            file.seek(self.at)
            new = file.read()
        new = new[:new.rfind(b'\n') + 1]
        self.at += len(new)
        self.lines += new.count(b'\n')
        return new

    def check_lines(self):
        """Returns the whole lines since the last call; fails if one of them is of a
        process that dies of its own fault."""
        new = self.new_lines()
        found = harness.FAULT.findall(new.decode(errors='replace'))
        check(not found, f'{found}')
        return new

    def read(self):
        """As check_lines(); fails also if the broker has ended."""
        new = self.check_lines()
        check(self.profd.running(), 'the broker has ended: status '
              f'{self.profd.process.returncode}')
        return new


class Arrivals:
    """The requests that a server has received. The files of their envelopes are
    removed."""

    def __init__(self, server):
        self.server, self.file = server, None

    def requests(self):
        """Yields the new requests, and of each the bytes of its envelope, or None."""
        if self.file is None:
            path = self.server.dir / 'requests.jsonl'
            if not path.exists():
                return
            self.file = open(path, encoding='utf-8')
        while True:
            at = self.file.tell()
            line = self.file.readline()
            if not line.endswith('\n'):
                self.file.seek(at)
                return
            request, data = json.loads(line), None
            if request.get('envelope'):
                path = self.server.dir / request['envelope']
                data = path.read_bytes()
                path.unlink()
            yield request, data

    def chunks(self):
        """Yields the new chunks. A request with a problem fails."""
        for request, data in self.requests():
            check(request.get('problems') == [], f'{request}')
            if data is None:
                continue
            chunk = Envelope(data, request['envelope']).chunk
            if chunk:
                yield chunk


def restarts(operator):
    """Returns {(process, reason): how often it was started again}."""
    found = operator.metrics()
    return {(process, reason): int(total(found, 'restarts_total', process=process,
                                         reason=reason))
            for process in CHILDREN for reason in REASONS}


def check_restarts(operator):
    """No process of the daemon was started again."""
    n = {of: n for of, n in restarts(operator).items() if n}
    check(not n, f'processes were started again: {n}')


def operator(box, profd, socket):
    """Returns the operator of a daemon, as soon as the daemon listens."""
    wait_for(lambda: control.listens(socket) or not profd.running(), 'a socket')
    check(profd.running(), profd.stderr)
    return control.Control(box, socket)


def replace_config(path, text):
    """The daemon reads the old configuration or the new one, whole."""
    new = path.with_suffix('.new')
    new.write_text(text)
    new.chmod(0o600)
    new.rename(path)
