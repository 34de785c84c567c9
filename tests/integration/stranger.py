"""Runs programs as a user without an account, for tests that root runs. If an
ordinary user runs the tests, the programs run as that user.
"""

import os
import pathlib
import shutil

from harness import BUILD, Skip

# Debian's accounts have the ids from 1000 to 59999.
UID = 60001

EXECUTABLES = ('sentry-profd', 'sentry-profd-capture', 'sentry-profd-unwind',
               'sentry-profd-ship')

YAMA = pathlib.Path('/proc/sys/kernel/yama/ptrace_scope')


def options(uid=UID):
    """Returns options of subprocess.Popen to run as this user."""
    if os.geteuid() != 0:
        return {}
    return {'user': uid, 'group': uid, 'extra_groups': ()}


def need_root():
    if os.geteuid() != 0:
        raise Skip('only root can become another user')


def need_ptrace():
    """Skips the test unless the user may trace his own processes."""
    if YAMA.exists() and YAMA.read_text().strip() != '0':
        raise Skip(f'Yama ({YAMA}) lets nobody trace but root')


def copy(box, names):
    """Copies files of BUILD into a directory that the user may read and run
    programs of. The user may not be able to read the original ones."""
    directory = box.make_dir('bin')
    for name in names:
        path = directory / os.path.basename(name)
        shutil.copy2(BUILD / name, path)
        path.chmod(0o755)
    return directory


def make_dir(box, name, uid=UID):
    """Makes a directory that belongs to the user."""
    directory = box.make_dir(name)
    if os.geteuid() == 0:
        os.chown(directory, uid, uid)
    return directory


def target(box, name, *args, uid=UID):
    """Calls box.target as the user."""
    program = box.start([copy(box, [f'targets/{name}']) / name, *args],
                        **options(uid))
    program.wait_line('ready.*')
    return program


def profd(box, targets, *args, **more):
    """Calls box.profd as the user."""
    return box.profd(targets, *args,
                     exe=copy(box, EXECUTABLES) / 'sentry-profd',
                     directory=make_dir(box, 'profd'), **options(), **more)
