"""What storms look at: the log and the memory of the daemon, the chunks that arrive, and
whether one of the daemon's processes had to be started again."""

import json

import control
import harness
from harness import Envelope, check, wait_for
from openmetrics import total

CHILDREN = ('capture', 'unwind', 'ship')
REASONS = ('signal', 'status', 'dismissed', 'heartbeat')


def resident_mb(pid):
    return int((harness.proc_status(pid, 'VmRSS') or '0').split()[0]) / 1024


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
