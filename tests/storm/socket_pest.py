"""A program of another user that attacks the daemon's socket; the storm "sockets"
starts it, once for each attack. It uses the standard library only, since it runs
from a copy.

    socket_pest.py ATTACK FACTS

FACTS is a JSON object:

    socket, seed
    own        pids of processes of this user
    others     pids of processes that the user has no rights to
    sections   names of sections
    secrets    texts that the user must never be shown
    fds        descriptors that only root can open, to be passed on
    program    a program that sleeps
    suid       a set-user-ID program of root's
    hidden     the name of a function of that program

Runs until its standard input ends. Each line that begins with "GAINED" says what the
user must not have got; the last line is "did" with counts as JSON.
"""

import array
import contextlib
import ctypes
import fcntl
import json
import os
import random
import resource
import select
import signal
import socket
import struct
import sys
import time

HELLO, ANSWER, START, STOP, PROFILER_ID = 1, 2, 3, 4, 5
SPANS_OPEN, SPANS_CLOSED, THREAD, ATTACH, DETACH = 6, 7, 8, 9, 10
STATUS, RELOAD, RECORD, WATCH, RECORD_END = 11, 12, 13, 14, 15
METRICS, OPENMETRICS, CHECK, RELEASE, TYPE_END = 16, 17, 18, 19, 20
MAGIC = 0x46525053
ANSWER_BYTES = 328

# Results of lib/client/protocol.h.
OK, RUNS_ALREADY, NOT_RUNNING, NOT_SAMPLED, TRACE_MODE, LEFT_OUT = range(6)
DENIED, NO_PROCESS, NO_TARGET, BAD_VERSION, BUSY, FAILED = range(6, 12)
REFUSED = (DENIED, NO_PROCESS, NO_TARGET, BAD_VERSION, BUSY, FAILED)

# About a process that the request names.
ABOUT = (START, STOP, PROFILER_ID, ATTACH, DETACH, RELEASE, RECORD, WATCH)
OPERATORS = (RELOAD, CHECK)
# The daemon permits a process 8 connections and a user 1,024.
PROCESSES, CONNECTIONS = 150, 9
PATIENCE_S = 30
# How long the set-user-ID program runs.
SUID_S = '2'

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
libc = ctypes.CDLL(None)

counts = {}


def count(what, n=1):
    counts[what] = counts.get(what, 0) + n


def gained(text):
    print(f'GAINED {text}', flush=True)


def header(kind, size, tag):
    return struct.pack('=3I', kind, size, tag)


def hello(version=6, flags=0, tag=1):
    return header(HELLO, 24, tag) + struct.pack('=3I', MAGIC, version, flags)


def request(kind, pid=0, name=b'', tag=1):
    return header(kind, 80, tag) + struct.pack('=i64s', pid, name)


class Peer:
    """A connection. requests: {tag: (kind, pid, name)}."""

    def __init__(self, facts, greet=True, flags=0):
        self.facts = facts
        self.requests = {}
        self.tag = 1
        self.s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.s.settimeout(PATIENCE_S)
        try:
            self.s.connect(facts['socket'])
            if greet:
                self.send(hello(flags=flags))
        except BaseException:
            self.s.close()
            raise
        count('connections')

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.s.close()

    def send(self, data, fds=()):
        if fds:
            self.s.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                     array.array('i', fds))])
        else:
            self.s.send(data)
        count('messages')

    def ask(self, kind, pid=0, name=b''):
        self.tag += 1
        self.requests[self.tag] = kind, pid, name
        self.send(request(kind, pid, name, self.tag))

    def result(self, kind, pid=0, name=b''):
        """Asks, and reads until the answer; returns it, or None at the end."""
        self.ask(kind, pid, name)
        while (found := self.answer()) and found[0] != self.tag:
            pass
        return found

    def answer(self, timeout=PATIENCE_S):
        """Reads one answer; returns (tag, result, descriptor or None, state), or None
        at the end. Checks that the answer gives nothing away."""
        self.s.settimeout(timeout)
        data, ancillary, _, _ = self.s.recvmsg(4096, socket.CMSG_SPACE(64))
        fds = [fd for level, kind, some in ancillary if level == socket.SOL_SOCKET
               and kind == socket.SCM_RIGHTS for fd in array.array('i', some)]
        if not data:
            return None
        count('answers')
        if len(data) != ANSWER_BYTES or len(fds) > 1:
            gained(f'an answer of {len(data)} bytes with {len(fds)} descriptors')
            return None
        _, _, tag, result, _, _, state, size, n = struct.unpack_from('=5IiIII', data)
        check_text(self.facts, data)
        kind, of, name = self.requests.pop(tag, (HELLO, 0, b''))
        if kind in OPERATORS and result != DENIED:
            gained(f'request {kind} is answered {result}')
        if kind in ABOUT and of in self.facts['others'] and result not in REFUSED:
            gained(f'request {kind} about {of} is answered {result}')
        if kind in (START, STOP, RECORD, WATCH) and name and result not in REFUSED and \
                name.decode(errors='replace') in self.facts['sections']:
            gained(f'request {kind} about section {name} is answered {result}, {n}')
        if fds and kind in (STATUS, METRICS, OPENMETRICS):
            check_text(self.facts, read_all(fds[0], size))
            if kind == STATUS:
                check_status(self.facts, read_all(fds[0], size))
        return tag, result, fds[0] if fds else None, state

    def drain(self, timeout=PATIENCE_S):
        """Reads answers, until there is one to each request."""
        while self.requests:
            found = self.answer(timeout)
            if found is None:
                return
            if found[2] is not None:
                os.close(found[2])


def read_all(fd, size):
    return os.pread(fd, min(size, 1 << 24), 0)


def check_text(facts, data):
    for secret in facts['secrets']:
        if secret.encode() in data:
            gained(f'{secret} is in {data[:300]}')


def check_status(facts, data):
    for target in json.loads(data)['targets']:
        if target['pid'] in facts['others'] and any(
                target[k] is not None for k in (
                    'profiler_id', 'threads', 'samples_taken', 'missed', 'last_error')):
            gained(f'the status shows {target}')


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def fork(function, *args, outlives=False):
    """Calls a function in a child, which dies with its parent unless it outlives
    it; returns its pid."""
    pid = os.fork()
    if pid:
        return pid
    if not outlives:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    try:
        function(*args)
    except Exception as e:  # its end is what matters
        if os.environ.get('PEST_DEBUG'):
            print(repr(e), file=sys.stderr)
    finally:
        os._exit(0)


def reap(pids):
    for pid in pids:
        os.waitpid(pid, 0)


# The attacks. Each is called again and again.

def garbage(facts, rng):
    """Messages of no or of any meaning, before and after a greeting."""
    with Peer(facts, greet=rng.random() < 0.5) as peer:
        for _ in range(rng.choice((1, 1, 5, 50))):
            size = rng.choice((0, 1, 11, 12, 23, 24, 25, 79, 80, 81, 512, 513, 4096,
                               rng.randrange(100000)))
            data = bytearray(rng.choice((rng.randbytes(size), bytes(size), (hello() + request(
                rng.randrange(20)))[:size])))
            if rng.random() < 0.5 and data:
                data[:12] = header(rng.randrange(22), rng.choice((size, 80, 24, 0)), 7)[
                    :len(data)]
            count('garbage')
            peer.send(bytes(data))
        if rng.random() < 0.7:
            while peer.answer(0.2):
                pass


def random_pid(facts, rng):
    return rng.choice((
        rng.choice(facts['others']), rng.choice(facts['others']), rng.choice(facts['own']),
        os.getpid(), os.getppid(), 0, 1, -1, -2**31, 2**31 - 1, 2, rng.randrange(40000)))


NAMES = (b'', b'', b'', b'%n%s', b'x' * 64, b'x' * 63, b'\0x', b'\x1b[2J', b'\xff' * 10,
         b'../../etc', b'a' * 30 + b'\0' + b'b' * 30, b'"\\{}')


def random_request(facts, rng):
    kind = rng.choice((*range(3, TYPE_END), START, ATTACH, STATUS, RECORD, CHECK,
                       rng.randrange(2**32)))
    name = rng.choice(NAMES + tuple(n.encode() for n in facts['sections']))
    pid = random_pid(facts, rng) if rng.random() < 0.8 else 0
    return kind, pid, name if rng.random() < 0.3 else b''


def requests(facts, rng):
    """Every request with random fields. All answers are read, and none may be in
    favour of a user without rights."""
    with Peer(facts, flags=rng.choice((0, 0, 1, 0xffffffff))) as peer:
        for _ in range(rng.randint(1, 30)):
            peer.ask(*random_request(facts, rng))
            if rng.random() < 0.5:
                peer.drain()
        peer.drain()


def about_others(facts, rng):
    """As requests, with fields that could hit another user's process."""
    with Peer(facts) as peer:
        for _ in range(20):
            kind = rng.choice(ABOUT + OPERATORS)
            pid = rng.choice(facts['others'])
            if rng.random() < 0.3 and kind in (START, STOP, RECORD, WATCH):
                peer.ask(kind, 0, rng.choice(facts['sections']).encode())
            else:
                peer.ask(kind, 0 if kind == RELOAD else pid)
            count('requests about others')
        peer.drain()


def hold(facts, rng):
    """Opens as many connections as it can, and holds them until it is killed."""
    held = []
    for _ in range(CONNECTIONS):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.settimeout(1)
        held.append(s)
        try:
            s.connect(facts['socket'])
            if rng.random() < 0.5:
                s.send(hello(flags=rng.choice((0, 1))))
        except OSError:
            pass
    time.sleep(PATIENCE_S)


def waves(facts, rng):
    """More connections than a user may have, from many processes at once."""
    pids = [fork(hold, facts, random.Random(rng.random())) for _ in range(PROCESSES)]
    time.sleep(rng.uniform(0.5, 1.5))
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    reap(pids)
    count('connections in waves', PROCESSES * CONNECTIONS)


def flood(facts, rng):
    """Connects and disconnects as fast as it can."""
    for _ in range(200):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.settimeout(PATIENCE_S)
        try:
            s.connect(facts['socket'])
            if rng.random() < 0.2:
                s.send(hello(flags=1))
        except OSError:
            pass
        s.close()
        count('connections of the flood')


def slow(facts, rng):
    """Asks for much, and reads nothing, or little, or late."""
    with Peer(facts, flags=rng.choice((0, 1))) as peer:
        peer.s.setblocking(False)
        try:
            for _ in range(rng.choice((1, 100, 3000))):
                peer.send(request(rng.choice((STATUS, METRICS, OPENMETRICS, STATUS)),
                                  tag=rng.choice((1, 1, 1, 0))))
        except BlockingIOError:
            count('full sockets')
        for _ in range(rng.choice((0, 0, 3))):
            time.sleep(rng.uniform(0, 0.3))
            select.select([peer.s], [], [], 1)
            try:
                peer.s.recv(1)
            except OSError:
                break
        time.sleep(rng.uniform(0, 0.5))


def full_linger():
    """A TCP socket whose close(2) waits: it has data that nothing reads."""
    listening = socket.create_server(('127.0.0.1', 0))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    s = socket.create_connection(listening.getsockname())
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 3600))
    s.setblocking(False)
    try:
        while True:
            s.send(bytes(65536))
    except BlockingIOError:
        pass
    return s, listening


def descriptors(facts, rng):
    """Passes descriptors: of sockets whose close waits, of FIFOs, of the connection
    itself, as many as a message may have."""
    keep = [*full_linger(), *socket.socketpair(), socket.socketpair(
        socket.AF_UNIX, socket.SOCK_SEQPACKET)[0]]
    fifo = f'/tmp/.pest-{os.getpid()}'
    os.mkfifo(fifo)
    fds = [s.fileno() for s in keep]
    try:
        fds.append(os.open(fifo, os.O_RDWR))
    finally:
        os.unlink(fifo)
    own = fds[len(keep):] + [*os.pipe(), os.memfd_create('x'), os.pidfd_open(os.getpid()),
                             select.epoll().fileno()]
    with Peer(facts, greet=rng.random() < 0.5) as peer:
        for _ in range(rng.randint(1, 5)):
            some = rng.choice(([peer.s.fileno()], fds, facts['fds'] or fds, fds[:1] * 200,
                               own[-4:-2], [rng.choice(fds)]))
            data = rng.choice((hello(), request(STATUS), rng.randbytes(24), b'x'))
            try:
                peer.send(data, some)
                count('descriptors passed', len(some))
            except PermissionError:
                count('descriptors refused', len(some))
                break
        if rng.random() < 0.5:
            peer.s.settimeout(0.2)
            peer.s.recv(4096)
    for fd in own[:-1]:
        try:
            os.close(fd)
        except OSError:
            pass
    # A close would wait for what it is about.
    keep[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 0, 0))
    for s in keep:
        s.close()


def sleeper(facts):
    """Starts a program that can be attached; returns its pid."""
    return fork(os.execv, facts['program'], [facts['program'], 'nanosleep'])


# The states in which a client dies.

def dies_connected(_facts, _rng, _own):
    die()


def dies_greeted(facts, rng, _own):
    with Peer(facts, flags=rng.choice((0, 1))) as peer:
        if rng.random() < 0.5:
            peer.answer(1)
        die()


def dies_with_half_a_message(facts, rng, _own):
    with Peer(facts, greet=rng.random() < 0.5) as peer:
        data = rng.choice((hello(), request(START)))
        peer.send(data[:rng.randrange(1, len(data))])
        die()


def dies_after(*kinds):
    """After these requests, with or without their answers."""
    def state(facts, rng, own):
        with Peer(facts, flags=1) as peer:
            for kind in kinds:
                peer.ask(kind, 0 if kind in (START, STOP, SPANS_OPEN, STATUS, RELOAD,
                                             METRICS) else own)
            for _ in range(rng.randrange(len(kinds) + 2)):
                found = peer.answer(2)
                if found and found[2] is not None and rng.random() < 0.5:
                    os.close(found[2])
            time.sleep(rng.choice((0, 0, 0.1, 1.2)))
            die()
    return state


STATES = (
    dies_connected, dies_greeted, dies_with_half_a_message, dies_after(START),
    dies_after(SPANS_OPEN), dies_after(START, SPANS_OPEN, STOP), dies_after(ATTACH),
    dies_after(ATTACH, RECORD), dies_after(RECORD), dies_after(WATCH, WATCH, RECORD),
    dies_after(RECORD, RECORD_END), dies_after(STATUS), dies_after(STATUS, METRICS),
    dies_after(THREAD), dies_after(CHECK), dies_after(RELOAD), dies_after(DETACH),
    dies_after(ATTACH, DETACH, ATTACH, PROFILER_ID))


def deaths(facts, rng):
    """A client dies in each state, alone or with the process that it has asked
    for."""
    for state in rng.sample(STATES, 6):
        own = sleeper(facts)
        reap([fork(state, facts, random.Random(rng.random()), own)])
        count('deaths')
        if rng.random() < 0.5:
            time.sleep(rng.uniform(0, 0.3))
        os.kill(own, signal.SIGKILL)
        reap([own])


def fork_storm(facts, rng):
    """Processes that connect, fork and die, so that their pids come again soon."""
    def speak(peer):
        # The connection of a process that is gone.
        time.sleep(rng.uniform(0, 0.2))
        peer.ask(PROFILER_ID)
        peer.ask(SPANS_OPEN)
        peer.answer(1)

    def client():
        with Peer(facts, flags=1) as peer:
            peer.ask(START)
            fork(speak, peer, outlives=True)
            os._exit(0)
    pids = []
    for _ in range(100):
        pids.append(fork(client) if rng.random() < 0.2 else fork(os._exit, 0))
    reap(pids)
    count('forks', 100)


def becomes_root(facts, rng):
    """A process that is recorded by its user becomes a set-user-ID program: none
    of its new functions may be in a chunk."""
    def become():
        os.read(reader, 1)
        os.execv(facts['suid'], [facts['suid'], SUID_S])
    reader, writer = os.pipe()
    pid = fork(become)
    recorded = None
    try:
        with Peer(facts) as peer:
            found = peer.result(rng.choice((WATCH, RECORD)), pid)
            if found is None or found[2] is None:
                return
            recorded = socket.socket(fileno=found[2])
            if rng.random() < 0.5:
                peer.ask(ATTACH, pid)
            time.sleep(rng.uniform(0, 1.5))
            os.write(writer, b'x')
            time.sleep(rng.uniform(0, 1.5))
            peer.drain()
            # The process is root's from now on.
            if os.stat(f'/proc/{pid}/stat').st_uid == 0:
                facts = dict(facts, others=facts['others'] + [pid])
                peer.facts = facts
            for kind in (START, STOP, PROFILER_ID, RECORD, WATCH, ATTACH, DETACH):
                peer.ask(kind, pid)
            while peer.requests:
                found = peer.answer()
                if found is None:
                    break
                if found[2] is not None:
                    os.close(found[2])
            count('set-user-ID programs')
            read_recording(facts, recorded, 1)
    finally:
        os.close(writer)
        os.close(reader)
        if recorded:
            recorded.close()
        # Only root may kill it; it ends after its time.
        try:
            os.kill(pid, signal.SIGKILL)
        except PermissionError:
            pass
        reap([pid])


def is_roots(pid):
    """False if the process has ended, and until it has executed a program of root's."""
    with contextlib.suppress(OSError):
        return os.stat(f'/proc/{pid}/stat').st_uid == 0
    return False


def speaks_for_root(facts, rng):
    """A client executes a set-user-ID program, and its child, which has the
    connection, makes requests about "itself"."""
    def speak(peer, pid):
        end = time.monotonic() + float(SUID_S)
        while not is_roots(pid) and time.monotonic() < end:
            time.sleep(0.01)
        for kind in (START, STOP, PROFILER_ID, SPANS_OPEN, RELEASE):
            # It ends after its time.
            if not is_roots(pid):
                return
            found = peer.result(kind)
            if found is None:
                return
            if found[1] not in REFUSED:
                gained(f'a connection of {pid}, which is root, is answered {found} to {kind}')

    def client():
        with Peer(facts, flags=rng.choice((0, 1))) as peer:
            if rng.random() < 0.7:
                peer.answer()
            fork(speak, peer, os.getpid(), outlives=True)
            os.execv(facts['suid'], [facts['suid'], SUID_S])
    reap([fork(client)])
    count('set-user-ID programs with a connection')


def read_recording(facts, s, seconds):
    """Reads a recording for so long, or to its end. What it gets are bytes, and no descriptor."""
    end, last = time.monotonic() + seconds, b''
    while time.monotonic() < end:
        s.settimeout(max(0.01, end - time.monotonic()))
        try:
            data, ancillary, _, _ = s.recvmsg(1 << 16, socket.CMSG_SPACE(64))
        except OSError:
            return
        if ancillary:
            gained('a recording has a descriptor')
        if not data:
            return
        reason, _, size, at = struct.unpack_from('=4I', data)
        count('chunks recorded', reason == 0 and at + len(data) - 16 == size)
        # The name may lie in two pieces.
        if facts['hidden'].encode() in last + data[16:]:
            gained('a recording has functions of a set-user-ID program')
        last = data[16:]
        if reason != 0:
            count(f'recordings that end, reason {reason}')
            return


def recorders(facts, rng):
    """Records a process of its own, and keeps the sockets: reads nothing, a little, or all, ends
    the recording or the connection before that, splices the socket, and closes it late."""
    pid, kept = sleeper(facts), []
    readers, writers = os.pipe()
    fcntl.fcntl(writers, fcntl.F_SETFL, os.O_NONBLOCK)
    try:
        for _ in range(rng.choice((2, 5, 20))):
            with Peer(facts) as peer:
                found = peer.result(rng.choice((WATCH, WATCH, RECORD)), pid)
                if found is None:
                    break
                count(f'recordings, result {found[1]}')
                if found[2] is None:
                    time.sleep(rng.uniform(0, 0.2))
                    continue
                s = socket.socket(fileno=found[2])
                kept.append(s)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 30)
                how = rng.randrange(5)
                if how == 0:
                    read_recording(facts, s, rng.uniform(0, 2))
                elif how == 1:
                    s.settimeout(1)
                    with contextlib.suppress(OSError):
                        s.recv(rng.choice((1, 100, 1 << 16)))
                elif how == 2:
                    s.setblocking(False)
                    time.sleep(rng.uniform(0, 1.2))
                    with contextlib.suppress(OSError):
                        os.splice(s.fileno(), writers, 1 << 16)
                elif how == 3:
                    s.shutdown(rng.choice((socket.SHUT_RD, socket.SHUT_WR, socket.SHUT_RDWR)))
                if rng.random() < 0.5:
                    peer.result(RECORD_END)
        if rng.random() < 0.3:
            time.sleep(rng.uniform(0, 7))
    finally:
        for s in kept:
            s.close()
        os.close(readers)
        os.close(writers)
        os.kill(pid, signal.SIGKILL)
        reap([pid])


def heir(facts):
    """A client whose process ends, and whose child keeps the connection. Says its
    pid; then another process gets it, as a line of the standard input tells, and the
    child speaks about "itself". With facts['is_frozen'] the daemon accepts the
    connection after that only."""
    reader, writer = os.pipe()

    def keep(peer, pid):
        os.read(reader, 1)
        for kind, of in ((START, 0), (SPANS_OPEN, 0), (PROFILER_ID, 0), (THREAD, pid),
                         (ATTACH, pid), (RECORD, pid), (STOP, 0), (DETACH, pid)):
            found = peer.result(kind, of)
            if found is None:
                break
            if kind in (THREAD, ATTACH, RECORD, DETACH) and found[1] not in REFUSED or \
                    kind in (START, STOP, PROFILER_ID) and found[3] != 0:
                gained(f'the heir of {pid} is answered {found} to {kind}')
        time.sleep(0.5)

    def client():
        with Peer(facts, flags=1) as peer:
            peer.ask(facts['last'])
            if not facts['is_frozen']:
                peer.drain()
            fork(keep, peer, os.getpid(), outlives=True)
            os._exit(0)
    pid = fork(client)
    reap([pid])
    print(f'gone {pid}', flush=True)
    sys.stdin.readline()
    os.write(writer, b'x')
    # There is no child if the user had too many connections.
    with contextlib.suppress(ChildProcessError):
        os.waitpid(-1, 0)


ATTACKS = {f.__name__: f for f in (
    garbage, requests, about_others, waves, flood, slow, descriptors, deaths, fork_storm,
    becomes_root, speaks_for_root, recorders)}


def reap_all():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def main():
    name, facts = sys.argv[1], json.loads(sys.argv[2])
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    rng = random.Random(f'{facts["seed"]} {name}')
    print('ready', flush=True)
    if name == 'heir':
        heir(facts)
    while name != 'heir' and not select.select([sys.stdin], [], [], 0)[0]:
        try:
            ATTACKS[name](facts, rng)
        except (OSError, struct.error) as e:
            count(type(e).__name__)
        count('rounds')
        reap_all()
    print('did ' + json.dumps(counts), flush=True)


if __name__ == '__main__':
    main()
