"""Running as a user whom nobody is: what tests need that are run by root.

Run by an ordinary user, the tests are that user's own.
"""

import os
import pathlib
import shutil

from harness import BUILD, Skip

# Debian's accounts begin at 1000 and end at 59999.
UID = 60001

EXECUTABLES = ('sentry-profd', 'sentry-profd-capture', 'sentry-profd-unwind',
               'sentry-profd-ship')

YAMA = pathlib.Path('/proc/sys/kernel/yama/ptrace_scope')


def options(uid=UID):
    """For subprocess.Popen: become him."""
    if os.geteuid() != 0:
        return {}
    return {'user': uid, 'group': uid, 'extra_groups': ()}


def need_root():
    if os.geteuid() != 0:
        raise Skip('only root can become another user')


def need_ptrace():
    """He may trace his own processes."""
    if YAMA.exists() and YAMA.read_text().strip() != '0':
        raise Skip(f'Yama ({YAMA}) lets nobody trace but root')


def copy(box, names):
    """Copies of files in BUILD, in a directory of their own, which he may
    read and run: the original ones may stand where he must not look."""
    directory = box.make_dir('bin')
    for name in names:
        path = directory / os.path.basename(name)
        shutil.copy2(BUILD / name, path)
        path.chmod(0o755)
    return directory


def make_dir(box, name, uid=UID):
    """A directory of his."""
    directory = box.make_dir(name)
    if os.geteuid() == 0:
        os.chown(directory, uid, uid)
    return directory


def target(box, name, *args, uid=UID):
    """box.target, as him."""
    program = box.start([copy(box, [f'targets/{name}']) / name, *args],
                        **options(uid))
    program.wait_line('ready.*')
    return program


def profd(box, targets, *args, **more):
    """box.profd, as him."""
    return box.profd(targets, *args,
                     exe=copy(box, EXECUTABLES) / 'sentry-profd',
                     directory=make_dir(box, 'profd'), **options(), **more)
