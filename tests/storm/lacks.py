"""Lives of the storm faults with a lack of descriptors, of address space, of
room on the disk, or of memory, for which the kernel kills the process. A part of
that storm.
"""

import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess

import harness
from fault_life import STATUSES, Life
from harness import Skip

PROCESSES = ('broker', 'capture', 'unwind', 'ship')
DISK_BYTES = 256 << 10
GROUP_BYTES = 4 << 10
CGROUPS = pathlib.Path('/sys/fs/cgroup')
MNT_DETACH = 2


class Lack(Life):
    """process: the kind of the daemon's process that has the lack from begin()
    on."""

    strained_s = 5

    def __init__(self, *args, process, rng):
        super().__init__(*args)
        self.process, self.rng = process, rng
        if process != 'broker':
            self.may_restart = {process}
        self.pid = 0

    def begin(self):
        pids = [self.profd.pid] if self.process == 'broker' else \
            self.profd.helpers()[self.process]
        if pids:
            self.pid = self.rng.choice(pids)
            self.take()

    def failed(self):
        return self.pid != 0


class Limited(Lack):
    """A resource limit a little above the present use, until relieve()."""

    is_set = False

    def take(self):
        with open(f'/proc/{self.pid}/limits', encoding='ascii') as file:
            line, = [l for l in file if l.startswith(self.limit)]
        self.before = line[len(self.limit):].split()[:2]
        self.is_set = True
        self.set(self.least(), self.before[1])

    def relieve(self):
        if self.is_set and harness.state(self.pid) not in ('', 'Z'):
            self.set(*self.before)

    def set(self, soft, hard):
        """As the user of the process, which needs no CAP_SYS_RESOURCE."""
        uid, gid = (int(harness.proc_status(self.pid, ids).split()[0])
                    for ids in ('Uid', 'Gid'))
        subprocess.run(['prlimit', '--pid', str(self.pid),
                        f'--{self.option}={soft}:{hard}'], check=False,
                       stderr=subprocess.DEVNULL, user=uid, group=gid,
                       extra_groups=())


class Descriptors(Limited):
    limit, option = 'Max open files', 'nofile'

    def least(self):
        return max(harness.descriptors(self.pid)) + self.rng.randint(0, 3)


class AddressSpace(Limited):
    limit, option = 'Max address space', 'as'
    # By SIGSEGV, if the stack cannot grow.
    may_crash = True

    def least(self):
        size_kb = int(harness.proc_status(self.pid, 'VmSize').split()[0])
        return (size_kb << 10) + (self.rng.choice((0, 64, 1024)) << 10)


class Disk(Lack):
    """The file system of the output or of the spool is full. process: "output"
    or "spool"."""

    def prepare(self):
        self.path = getattr(self, self.process)
        if harness.libc.mount(b'tmpfs', bytes(self.path), b'tmpfs', 0,
                              b'mode=755,size=%d' % DISK_BYTES) != 0:
            raise Skip(f'mount: {os.strerror(ctypes.get_errno())}')
        self.is_mounted = True

    is_mounted = False

    def begin(self):
        self.pid = self.profd.pid
        with contextlib.suppress(OSError), \
                open(self.path / 'filler', 'wb', buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def relieve(self):
        with contextlib.suppress(OSError):
            (self.path / 'filler').unlink()

    def end(self):
        if self.is_mounted:
            harness.libc.umount2(bytes(self.path), MNT_DETACH)
        super().end()


class Memory(Lack):
    """The process is in a control group of its own that has no memory left, so
    that the kernel ends it by SIGKILL when it needs a page."""

    group = None

    def prepare(self):
        self.group, limit, value = memory_group(f'profd-{os.getpid()}-'
                                                f'{self.dir.name}')
        (self.group / limit).write_text(value)

    def take(self):
        with contextlib.suppress(ProcessLookupError):
            (self.group / 'cgroup.procs').write_text(str(self.pid))

    def failed(self):
        """Only the OOM killer kills this process."""
        return self.pid != 0 and harness.state(self.pid) in ('', 'Z')

    def statuses(self):
        return STATUSES + ((-signal.SIGKILL,) if self.process == 'broker' and
                           self.pid else ())

    def relieve(self):
        if self.pid:
            with contextlib.suppress(OSError):
                (self.group.parent / 'cgroup.procs').write_text(str(self.pid))

    def end(self):
        super().end()
        if self.group:
            with contextlib.suppress(OSError):
                self.group.rmdir()


def memory_group(name):
    """Makes a control group; returns its directory, the file of its limit, and
    the text that it gets."""
    for parent, limit in ((CGROUPS / 'memory', 'memory.limit_in_bytes'),
                          (CGROUPS, 'memory.max')):
        group = parent / name
        with contextlib.suppress(OSError):
            group.mkdir()
            if (group / limit).exists():
                return group, limit, str(GROUP_BYTES)
            group.rmdir()
    raise Skip('no control group for memory can be made')


# What is drawn from: (class, process, with executables without sanitizers).
ALL = [(Descriptors, p, False) for p in PROCESSES] + \
    [(AddressSpace, p, True) for p in PROCESSES] + \
    [(Disk, p, False) for p in ('output', 'spool')] + \
    [(Memory, p, False) for p in PROCESSES]
