"""A control group with a quota."""

import contextlib
import os
import pathlib

from harness import Skip, wait_for

TOP = pathlib.Path('/sys/fs/cgroup')


def inside(group):
    """Returns a command that executes its arguments in the group."""
    return ['sh', '-c', 'echo $$ >"$0" && exec "$@"', group / 'cgroup.procs']


@contextlib.contextmanager
def made(percent=60):
    """Gives a directory of a group with so much of a core, in which no process may be left at the end."""
    top, files = TOP, {'cpu.max': f'{percent * 1000} 100000'}
    if (TOP / 'cpu' / 'cpu.cfs_quota_us').exists():
        top, files = TOP / 'cpu', {'cpu.cfs_period_us': 100000, 'cpu.cfs_quota_us': percent * 1000}
        # If real-time tasks also have quotas, a new group may have none.
        if (top / 'cpu.rt_runtime_us').exists():
            files['cpu.rt_runtime_us'] = 10000
    group = top / f'profd-{os.getpid()}'
    try:
        group.mkdir()
        for file, text in files.items():
            with open(group / file, 'r+') as f:
                f.write(f'{text}')
    except OSError as e:
        if group.exists():
            group.rmdir()
        raise Skip(f'no control group with a quota: {e}') from None
    try:
        yield group
    finally:
        wait_for(lambda: not (group / 'cgroup.procs').read_text(), 'the end of its processes')
        group.rmdir()
