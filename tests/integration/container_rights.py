"""The rights that container runtimes give root in a container by default, and
how a test runs programs with them."""

import json
import os
import subprocess
import sys

import harness
import stranger
from harness import Skip

# CAP_* of <linux/capability.h>.
DOCKER = {
    'chown': 'give files away',
    'dac_override': 'read and write files whatever their permissions say',
    'fsetid': 'keep the set-user-ID bit of a file that it writes',
    'fowner': 'change permissions of files of others',
    'mknod': 'make device files',
    'net_raw': 'use raw sockets',
    'setgid': 'become another group',
    'setuid': 'become another user',
    'setfcap': 'set capabilities of files',
    'setpcap': 'drop capabilities from its bounding set',
    'net_bind_service': 'listen at ports below 1024',
    'sys_chroot': 'change its root',
    'kill': 'signal processes of others',
    'audit_write': 'write to the kernel\'s audit log',
}

# systemd-nspawn(1), --capability=. Without --private-network, net_admin is
# missing.
NSPAWN = {
    **DOCKER,
    'audit_control': 'configure the audit log',
    'dac_read_search': 'read files whatever their permissions say',
    'ipc_owner': 'use System V IPC objects of others',
    'lease': 'take leases on files',
    'linux_immutable': 'set the immutable attribute of files',
    'net_broadcast': 'nothing: it is not used',
    'sys_admin': 'mount, and much else',
    'sys_boot': 'restart the machine, here the container',
    'sys_nice': 'raise priorities',
    'sys_ptrace': 'trace processes, and look at them',
    'sys_resource': 'raise resource limits',
    'sys_tty_config': 'configure terminals',
}

# The lists by runtime. containerd's own clients and Kubernetes use Docker's
# list.
DEFAULTS = {
    'Docker, containerd, Kubernetes': frozenset(DOCKER),
    'systemd-nspawn': frozenset(NSPAWN),
}

# The ids of a user namespace: the user that root is mapped to, and the number
# of ids that follow.
FIRST_ID = 200000
IDS = 65536


def setpriv(names):
    """Returns a command that executes its arguments with these capabilities
    only."""
    bounding = ','.join(['-all', *(f'+{n}' for n in sorted(names))])
    return ['setpriv', '--inh-caps=-all', f'--bounding-set={bounding}']


# A filter: load the number of the call; if equal, RET_ERRNO | EPERM, otherwise
# RET_ALLOW (<linux/seccomp.h>). Then PR_SET_NO_NEW_PRIVS and PR_SET_SECCOMP.
FILTER = '''
import ctypes, os, struct, sys
program = b''.join(struct.pack('=HBBI', *i) for i in (
    (0x20, 0, 0, 0), (0x15, 0, 1, int(sys.argv[1])),
    (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)))
buffer = ctypes.create_string_buffer(program)
filter = struct.pack('@HP', 4, ctypes.addressof(buffer))
prctl = ctypes.CDLL(None, use_errno=True).prctl
if prctl(38, 1, 0, 0, 0) or prctl(22, 2, filter, 0, 0):
    sys.exit(os.strerror(ctypes.get_errno()))
os.execv(sys.argv[2], sys.argv[2:])
'''


def refusing(call):
    """Returns a command that executes its arguments under a filter which
    refuses the system call with this number, as a container's filter may."""
    return [sys.executable, '-c', FILTER, call]


class Container:
    """Runs programs with a set of capabilities. With own_users they run in a
    user namespace, like a rootless container."""

    def __init__(self, box, names, own_users=False):
        stranger.need_root()
        self.box = box
        self.limit = setpriv(names)
        self.enter = []
        self.first = 0
        if not own_users:
            return
        self.first = FIRST_ID
        holder = box.start(['unshare', '--user', 'sh', '-c',
                            'echo ready; exec sleep infinity'])
        try:
            holder.wait_line('ready')
        except harness.Failure:
            raise Skip(f'no user namespace: {holder.stderr}') from None
        for name in ('uid_map', 'gid_map'):
            with open(f'/proc/{holder.pid}/{name}', 'w') as file:
                file.write(f'0 {FIRST_ID} {IDS}\n')
        self.enter = ['nsenter', '--user', '--target', holder.pid,
                      '--setuid', '0', '--setgid', '0']

    def target(self, uid):
        """Starts the program shares as a user of the container. Only this user
        may read the program's file."""
        directory = stranger.copy(self.box, ['targets/shares'])
        for path in (directory / 'shares', directory):
            path.chmod(0o700)
            os.chown(path, self.first + uid, self.first + uid)
        become = self.limit if uid == 0 else [
            'setpriv', f'--reuid={uid}', f'--regid={uid}', '--clear-groups']
        program = self.box.start([*self.enter, *become, directory / 'shares'])
        program.wait_line('ready.*')
        return program

    def file(self, name, text):
        """Makes a file that belongs to the container's root."""
        directory = stranger.make_dir(self.box, 'etc', self.first)
        path = directory / name
        path.write_text(text)
        os.chown(path, self.first, self.first)
        path.chmod(0o600)
        return path

    def status(self, socket):
        """Returns the output of sentry-profctl, run as root in the container.
        """
        exe = stranger.copy(self.box, ['sentry-profctl']) / 'sentry-profctl'
        argv = [*self.enter, exe, 'status', '--json', '--socket', socket]
        return json.loads(subprocess.run(
            [str(a) for a in argv], check=True, capture_output=True,
            env=harness.environment(), cwd='/').stdout)

    def profd(self, targets, *args):
        exe = stranger.copy(self.box, stranger.EXECUTABLES) / 'sentry-profd'
        directory = stranger.make_dir(self.box, 'profd', self.first)
        return self.box.profd(targets, *args, exe=exe, directory=directory,
                              wrapper=self.enter + self.limit, cwd='/')
