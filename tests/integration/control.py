"""The daemon's socket in tests: sentry-profctl, and messages made by hand. The
numbers are those of lib/client/protocol.h.
"""

import json
import socket
import struct
import subprocess

import harness
import openmetrics
import status_schema
import stranger
from harness import check

HELLO, ANSWER, START, STOP, PROFILER_ID = 1, 2, 3, 4, 5
SPANS_OPEN, ATTACH, DETACH, STATUS, RELOAD, RECORD, RELEASE = 6, 9, 10, 11, 12, 13, 19
MAGIC = 0x46525053


def listens(path):
    """Returns true if the daemon listens. The path exists a moment before."""
    try:
        dial(path).close()
    except OSError:
        return False
    return True


class Control:
    """sentry-profctl for one daemon, as root or as a user."""

    def __init__(self, box, path):
        self.path = path
        # The user may not be able to read BUILD.
        self.exe = stranger.copy(box, ['sentry-profctl']) / 'sentry-profctl'

    def run(self, *args, status=0, uid=None, groups=()):
        options = {}
        if uid is not None:
            options = {'user': uid, 'group': uid, 'extra_groups': groups}
        done = subprocess.run(
            [self.exe, *map(str, args)], capture_output=True, text=True,
            check=False, env=harness.environment(
                SENTRY_PROFD_SOCKET=str(self.path)), cwd='/', **options)
        check(done.returncode == status,
              f'{args}: status {done.returncode}, not {status}: '
              f'{done.stdout}{done.stderr}')
        return done

    def status(self, **options):
        found = json.loads(self.run('status', '--json', **options).stdout)
        check(not status_schema.faults(found), f'{status_schema.faults(found)}')
        return found

    def metrics(self, **options):
        return openmetrics.read(
            self.run('metrics', '--openmetrics', **options).stdout)

    def target(self, pid, **options):
        """Returns the status of a process; None: it is not there."""
        return next((t for t in self.status(**options)['targets']
                     if t['pid'] == pid), None)

    def wait_state(self, pid, state):
        def reached():
            target = self.target(pid)
            return (target or {}).get('state') == state and target
        return harness.wait_for(reached, f'{pid} is {state}')


def header(kind, size, tag):
    return struct.pack('=3I', kind, size, tag)


def hello(version=1, tag=1):
    return header(HELLO, 24, tag) + struct.pack('=3I', MAGIC, version, 0)


def request(kind, pid=0, name=b'', tag=1):
    return header(kind, 80, tag) + struct.pack('=i64s', pid, name)


def dial(path):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(harness.PATIENCE_S)
    s.connect(str(path))
    return s


def answer(s):
    """Returns (result, state, profiler_id) of the next answer; None at the
    end."""
    data = s.recv(4096)
    if not data:
        return None
    check(len(data) == 328 and struct.unpack_from('=I', data)[0] == ANSWER,
          f'no answer: {data}')
    result, _, _, state = struct.unpack_from('=IIiI', data, 12)
    return result, state, data[36:72].rstrip(b'\0').decode()


def is_closed(s):
    try:
        return s.recv(4096) == b''
    except ConnectionResetError:
        return True
