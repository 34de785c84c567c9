"""Reads the state of processes from /proc. Processes and threads may end at
any time; the functions then return an empty value.
"""

import contextlib
import os
import pathlib
import re

from patience import wait_for


def proc_text(pid, name):
    try:
        return pathlib.Path(f'/proc/{pid}/{name}').read_text(errors='replace')
    except OSError:
        return ''


def proc_status(pid, field):
    """Returns a field of /proc/PID/status as text; '' if there is no such
    process."""
    found = re.search(rf'^{field}:[ \t]*(.*)$', proc_text(pid, 'status'), re.M)
    return found[1] if found else ''


def tracer(pid):
    """Returns the pid of the process that traces pid; 0: none. TracerPid is a
    thread of it."""
    return int(proc_status(proc_status(pid, 'TracerPid'), 'Tgid') or 0)


def state(pid):
    """Returns R, S, D, T, t, Z, or '' if there is no such process."""
    return proc_status(pid, 'State')[:1]


def threads(pid):
    try:
        return sorted(int(t) for t in os.listdir(f'/proc/{pid}/task'))
    except OSError:
        return []


def exe_name(pid):
    """Returns the name of its executable; only the first 15 bytes if only root
    may read the link."""
    try:
        return os.path.basename(os.readlink(f'/proc/{pid}/exe'))
    except OSError:
        return proc_text(pid, 'comm').rstrip('\n')


def children(pid):
    """Returns the pids of a process's living children."""
    found = []
    for tid in threads(pid):
        found += map(int, proc_text(pid, f'task/{tid}/children').split())
    return sorted(c for c in found if state(c) not in ('', 'Z'))


# The numbers of system calls. poll(3) calls ppoll on aarch64. restart_syscall stands for waits that
# were stopped.
CALLS = {
    'x86_64': {'read': 0, 'write': 1, 'poll': 7, 'nanosleep': 35, 'futex': 202,
               'clock_nanosleep': 230, 'restart_syscall': 219},
    'aarch64': {'read': 63, 'write': 64, 'poll': 73, 'nanosleep': 101, 'futex': 98,
                'clock_nanosleep': 115, 'restart_syscall': 128},
}[os.uname().machine]


def in_call(tid, *names):
    """Returns true if the thread is blocked in one of these calls."""
    return proc_text(tid, 'syscall').split()[:1] in [[str(CALLS[name])] for name in names]


def blocked(tid):
    """Returns true if the thread waits in a system call, and not for a page or for a lock of the
    kernel on its way there."""
    return in_call(tid, *(CALLS.keys() - {'write'}))


def descriptors(pid):
    """Returns {number: target of the link}; sockets and pipes without their
    inode."""
    found = {}
    for number in os.listdir(f'/proc/{pid}/fd'):
        # The descriptor may be closed at this moment.
        with contextlib.suppress(FileNotFoundError):
            link = os.readlink(f'/proc/{pid}/fd/{number}')
            found[int(number)] = re.sub(r':\[\d+\]$', '', link)
    return found


def cpu_seconds(pid):
    """Returns the processor time that a process has used in all of its
    threads."""
    fields = proc_text(pid, 'stat').rpartition(')')[2].split()
    if not fields:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def wait_work(pid, seconds):
    """Waits until a process has used this much more processor time. So the
    profiler sees that much work, however little processor time the process
    gets."""
    goal = cpu_seconds(pid) + seconds
    wait_for(lambda: cpu_seconds(pid) >= goal, f'{seconds} s of work')
