"""What storms look at: the log and the memory of the daemon, and whether one of its
processes had to be started again."""

import harness
from harness import check
from openmetrics import total

CHILDREN = ('capture', 'unwind', 'ship')


def resident_mb(pid):
    return int((harness.proc_status(pid, 'VmRSS') or '0').split()[0]) / 1024


class Log:
    """The new lines of the daemon's log, those of its children included."""

    def __init__(self, profd):
        self.profd, self.at, self.lines = profd, 0, 0

    def read(self):
        """Returns the whole lines since the last call; fails if one of them is of a
        process that dies of its own fault, or if the broker has ended."""
        with open(self.profd.err_path, 'rb') as file:
            file.seek(self.at)
            new = file.read()
        new = new[:new.rfind(b'\n') + 1]
        self.at += len(new)
        self.lines += new.count(b'\n')
        found = harness.FAULT.findall(new.decode(errors='replace'))
        check(not found, f'{found}')
        check(self.profd.running(), 'the broker has ended: status '
              f'{self.profd.process.returncode}')
        return new


def check_restarts(control):
    """No process of the daemon was started again."""
    found = control.metrics()
    n = {p: int(total(found, 'restarts_total', process=p)) for p in CHILDREN}
    check(not any(n.values()), f'processes were started again: {n}')
