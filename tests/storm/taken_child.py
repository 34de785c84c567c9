#!/usr/bin/python3
"""A child of the broker that a target has taken over, for the storm "taken", which puts this
program in the place of sentry-profd-capture, -unwind and -ship.

Beside the program are files of the storm:

    plan        JSON: {"hostile": [kinds], "behaviours": [names], "seed": N, "real": DIRECTORY,
                "files": [paths], "sink": PORT}. A kind that is not hostile is the executable
                in real. Nobody reads from the connections to the port.
    table       JSON: messages.table()
    types       names for hostile.py
    log         a line for each hostile process, "KIND BEHAVIOUR PID"; a line "leak: PATH"
                for a file that the broker has sent and that is not in files; and a line
                "fault: TEXT" for a fault of this program

A behaviour is a function of this module whose name begins with "do_". It draws everything from
the seed and from the number of processes before it. Most behaviours end by themselves after a
few seconds; the broker has to end the others.

unwind and ship change to the account that the broker names, as the real ones do. They have no
seccomp filter, so the storm makes no call that the filter forbids, except where a behaviour
says so.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import mmap
import os
import pathlib
import random
import re
import resource
import select
import signal
import socket
import struct
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
MSG_FD = 3
PR_SET_PDEATHSIG, PR_SET_DUMPABLE = 1, 4
KEEP_ID = 2**32 - 1

LIFE_S = (0.2, 2.5)
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL
F_SEAL_FUTURE_WRITE = 0x10
FALLOC_FL_KEEP_SIZE = 1
RING_SEALS = F_SEAL_FUTURE_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL

CHUNK_IDLE = 1000
# enum discard and enum ship_result: from 20 to 30, and from 0 to 2.
RESULTS = (0, 1, 2, 20, 21, 24, 30)
NUMBERS = (0, 1, 2, 7, 8, 255, 256, 4096, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**47,
           2**63 - 1, 2**63, 2**64 - 4096, 2**64 - 1)
TEXTS = (b'', b'/etc/shadow', b'../../etc/passwd', b'%n%n%s', b'\x1b[31m\x9b', b'\xff\xfe',
         b'native', b'0123456789abcdef' * 2, b'deadbeef', b'/' * 300, b'a' * 5000)
ERRORS = (errno.EPERM, errno.EBUSY, errno.ENOEXEC, errno.ESRCH, errno.EMFILE, errno.ENOMEM, 0, -1)


class Message:
    def __init__(self, entry):
        (self.name, self.type, self.sender, self.receiver, self.size, self.fds,
         self.fields) = entry

    def pack(self, values):
        data = bytearray(self.size)
        struct.pack_into('=II', data, 0, self.type, self.size)
        for name, at, size, is_text in self.fields:
            value = values.get(name, b'' if is_text else 0)
            data[at:at + size] = value[:size].ljust(size, b'\0') if is_text else \
                (value % 2**(8 * size)).to_bytes(size, sys.byteorder)
        return bytes(data)

    def unpack(self, data):
        return {name: data[at:at + size].rstrip(b'\0') if is_text else
                int.from_bytes(data[at:at + size], sys.byteorder)
                for name, at, size, is_text in self.fields}


class Taken:
    """The process, and what it has learned from the broker's messages."""

    def __init__(self, kind, plan):
        self.kind, self.plan = kind, plan
        self.table = [Message(e) for e in json.loads((HERE / 'table').read_text())]
        self.log = open(HERE / 'log', 'a+', encoding='utf-8')
        self.log.seek(0)
        n = sum(line.startswith(kind) for line in self.log)
        self.rng = random.Random(f'{plan["seed"]} {kind} {n}')
        self.broker = socket.socket(fileno=MSG_FD)
        self.links, self.pages, self.rings = [], [], {}
        self.targets, self.recordings, self.seqs = [], [], []
        self.requests, self.is_waiting = 0, False
        self.spied, self.no_code, self.maps = -1, -1, None
        self.numbers = [0]
        self.platform = b'native'
        self.end = time.monotonic() + self.rng.uniform(*LIFE_S)

    def say(self, line):
        self.log.write(line + '\n')
        self.log.flush()

    # Messages.

    def messages_to(self, receiver):
        return [m for m in self.table if m.sender == self.kind and m.receiver == receiver]

    def send(self, data, fds=(), to=None):
        """Returns false if the receiver takes no message now."""
        try:
            socket.send_fds(to or self.broker, [data], fds, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError as e:
            # Too many descriptors in flight, or none to send.
            if e.errno not in (errno.ETOOMANYREFS, errno.EINVAL, errno.EBADF):
                raise
        return True

    def send_values(self, name, fds=(), **values):
        m = next(m for m in self.table if m.name == name)
        return self.send(m.pack(values), fds)

    def receive(self, wait_s=0.0):
        """Reads one message of the broker; None: there is none."""
        if not select.select([self.broker], [], [], wait_s)[0]:
            return None
        data, fds, _, _ = socket.recv_fds(self.broker, 16384, 8)
        if not data:
            sys.exit()
        kind = struct.unpack_from('=I', data)[0]
        m = next(m for m in self.table
                 if m.type == kind and m.receiver == self.kind)
        values = m.unpack(data)
        self.learn(m.name, values, fds)
        return m.name, values

    def learn(self, name, values, fds):
        keep = []
        if name == 'INIT' and self.kind != 'ship':
            keep = self.pages = fds
        elif name == 'RING_OPEN':
            keep = fds
            self.links.append(socket.socket(fileno=fds[1]))
        elif name == 'RING_MAKE':
            keep = fds
            self.links.append(socket.socket(fileno=fds[0]))
            self.rings[values['id']] = None
        elif name in ('SESSION_OPEN', 'TARGET_ADD'):
            self.targets.append(values['target'])
            self.platform = values.get('platform') or self.platform
        elif name == 'RECORDING_OPEN':
            self.recordings.append((values['target'], values['recording']))
        elif name == 'ENVELOPE':
            self.seqs.append(values['seq'])
        elif name == 'FILE_REPLY':
            self.is_waiting = False
            if fds and values['request'] == self.spied:
                self.say('leak: a file of another user\'s process')
            if fds and values['request'] == self.no_code and \
                    os.readlink(f'/proc/self/fd/{fds[0]}').startswith('/memfd:'):
                self.say('leak: memory that is no code')
            if fds and self.maps is None:
                self.maps = os.pread(fds[0], 1 << 20, 0).decode('latin1')
            self.numbers.append(values['number'])
            for fd in fds:
                self.check_file(fd)
        for fd in fds:
            if fd not in keep:
                os.close(fd)

    def check_file(self, fd):
        path = os.readlink(f'/proc/self/fd/{fd}')
        if not path.startswith('/memfd:') and path not in self.plan['files']:
            self.say(f'leak: {path}')

    def answer(self, name, values):
        """The least that the broker waits for."""
        one = values.get('id', values.get('target', 0))
        if name == 'CAPTURE_STOP':
            sys.exit()
        elif name == 'SESSION_OPEN':
            self.send_values('SESSION_OPENED', id=one)
        elif name == 'SESSION_CLOSE':
            self.send_values('SESSION_CLOSED', id=one)
        elif name == 'USAGE':
            self.send_values('USAGE_DONE')
        elif name == 'TABLE':
            self.send_values('TABLE_DONE', target=one)
        elif name == 'RECORDING_CLOSE':
            self.send_values('RECORDING_CLOSED', target=one, recording=values['recording'])
        elif name == 'RING_MAKE':
            self.send_values('RING_MADE', [self.ring(one)], id=one)
        elif name == 'TARGET_ADD':
            self.send_values('TARGET_STATE', target=one, state=1)
        elif name == 'TARGET_REMOVE':
            self.send_values('TARGET_STATE', target=one, state=3)
        elif name == 'ENVELOPE':
            self.send_values('ENVELOPE_WRITTEN', seq=values['seq']) if values['to_file'] else None
            self.send_values('ENVELOPE_DONE', seq=values['seq'], result=1)
        elif name == 'PROBE':
            self.send_values('PROBED', status=200)
        elif name == 'PING':
            self.send_values('PONG')

    # Descriptors.

    def memfd(self, size, seals=SEALS):
        """Sealed, of this size. Its bytes cost memory: a large one has a hole behind the first."""
        fd = os.memfd_create('payload', os.MFD_ALLOW_SEALING)
        os.write(fd, self.rng.randbytes(min(size, 1 << 20)))
        os.ftruncate(fd, size)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
        return fd

    def recorded(self, size):
        """A chunk of a recording. Some have a hole, or memory behind their end."""
        rng, fd = self.rng, os.memfd_create('recorded', os.MFD_ALLOW_SEALING)
        os.write(fd, bytes(min(size, rng.choice((1 << 16, 1 << 25)))))
        os.ftruncate(fd, size)
        if rng.random() < 0.05:
            ctypes.CDLL(None).fallocate(fd, FALLOC_FL_KEEP_SIZE, ctypes.c_long(size),
                                        ctypes.c_long(32 << 20))
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)
        return fd

    def ring(self, number):
        """The memory of a ring, which this process can still write."""
        size = 1 << self.rng.choice((12, 16, 20, 22))
        fd = os.memfd_create('ring', os.MFD_ALLOW_SEALING)
        # The page of the head is behind the records.
        size += mmap.PAGESIZE
        os.ftruncate(fd, size)
        self.rings[number] = mmap.mmap(fd, size)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, RING_SEALS)
        return fd

    def any_fd(self):
        """A descriptor that no message has; the caller closes it."""
        rng = self.rng
        choice = rng.randrange(8)
        if self.kind == 'ship' and rng.random() < 0.3:
            return self.lingering()
        if choice == 0:
            return self.memfd(rng.randrange(1, 9000), rng.choice((0, SEALS)))
        if choice == 1:
            ends = os.pipe()
            os.close(ends[0])
            return ends[1]
        if choice == 2:
            return os.open('/', os.O_RDONLY)
        if choice == 3:
            return os.open('/dev/null', rng.choice((os.O_RDWR, os.O_PATH)))
        if choice == 4:
            a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
            # A queue with descriptors in it, and one of them the socket itself.
            socket.send_fds(a, [b'x'], [b.fileno(), 0])
            a.close()
            return b.detach()
        if choice == 5 and self.pages:
            return os.dup(self.pages[0])
        if choice == 6:
            return os.dup(MSG_FD)
        return os.dup(0)

    def lingering(self):
        """A connection that the last close(2) would wait for, since its peer reads nothing."""
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 3600))
        s.settimeout(0.2)
        try:
            s.connect(('127.0.0.1', self.plan['sink']))
            while True:
                s.send(bytes(65536), socket.MSG_DONTWAIT)
        except OSError:
            pass
        return s.detach()

    # The contents of messages.

    def number(self):
        rng = self.rng
        pool = rng.choice((NUMBERS, self.targets, self.seqs, range(12), self.numbers,
                           (os.getpid(), os.getppid(), 1)))
        return rng.choice(pool or NUMBERS)

    def text(self):
        if self.rng.random() < 0.3:
            return self.rng.randbytes(self.rng.choice((1, 32, 33, 255, 256, 1024)))
        return self.rng.choice(TEXTS)

    def target(self):
        return self.rng.choice(self.targets or [1])

    def truth(self, name):
        """Returns the values of a valid message, and its descriptors."""
        rng, target = self.rng, self.target()
        if name == 'CHUNK':
            size = rng.choice((1, 2, 300, 5000, 1 << 20, 50 << 20 if rng.random() < .02 else 9))
            return {'target': target, 'size': size, 'for_server': rng.randrange(2),
                    'chunk_id': rng.randbytes(16).hex().encode(), 'platform': self.platform}, \
                [self.memfd(size)]
        if name == 'RECORDING_CHUNK':
            of, number = rng.choice(self.recordings or [(target, 1)])
            size = rng.choice((1, 700, 1 << 18, 1 << 18, 5 << 20, 17 << 20))
            return {'target': of, 'recording': number, 'size': size}, [self.recorded(size)]
        if name in ('RECORDING_LOST', 'RECORDING_CLOSED'):
            of, number = rng.choice(self.recordings or [(target, 1)])
            return {'target': of, 'recording': number}, []
        if name == 'FILE_REQUEST':
            self.requests += 1
            start = rng.choice((4096, 0x400000, 2**64 - 8192, 0x555555554000))
            return {'request': self.requests, 'kind': rng.randrange(1, 8), 'target': target,
                    'start': start, 'end': start + 4096 * rng.choice((1, 9)),
                    'name': rng.choice((b'deadbeef00', b'libc.so.6', b'a.debug'))}, []
        if name == 'RING_MADE':
            ring = rng.choice(list(self.rings) or [1])
            return {'id': ring}, [self.ring(ring)]
        if name == 'RING_BROKEN':
            return {'id': rng.choice(list(self.rings) or [1])}, []
        if name == 'CHILD_BORN':
            return {'id': rng.choice((1, os.getpid(), 2**31 - 1))}, []
        if name.startswith('ENVELOPE_'):
            seq = rng.choice(self.seqs or [1])
            return {'seq': seq, 'result': rng.choice(RESULTS), 'error': rng.choice(ERRORS)}, []
        if name == 'LIMITED':
            later = time.clock_gettime_ns(time.CLOCK_BOOTTIME) + rng.randrange(3 * 10**9)
            return {'n': rng.choice((0, later))}, []
        if name == 'CHUNK_LOST':
            return {'target': target, 'reason': rng.choice((1, 20, 28, CHUNK_IDLE))}, []
        if name == 'TARGET_STATE':
            return {'target': target, 'state': rng.randrange(1, 8),
                    'error': rng.choice(ERRORS)}, []
        if name in ('CLOCK', 'SPOOL'):
            return {f: self.number() for f, *_ in
                    next(m for m in self.table if m.name == name).fields}, []
        return {'target': target, 'id': target}, []

    def compose(self, m, lies):
        """Returns the bytes and descriptors of a message in which each field is a lie with
        this probability."""
        values, fds = self.truth(m.name)
        for name, _, _, is_text in m.fields:
            if self.rng.random() < lies:
                values[name] = self.text() if is_text else self.number()
        while len(fds) < m.fds:
            fds.append(self.any_fd())
        return m.pack(values), fds

    def spoil(self, data, fds):
        """Breaks the shape of a message."""
        choice = self.rng.randrange(5)
        if choice == 0:
            return data[:self.rng.randrange(1, len(data))], fds
        if choice == 1:
            return data + bytes(self.rng.choice((1, 8, 16000))), fds
        if choice == 2:
            return struct.pack('=I', self.number() % 2**32) + data[4:], fds
        if choice == 3:
            return data[:4] + struct.pack('=I', self.number() % 2**32) + data[8:], fds
        return data, fds + [self.any_fd() for _ in range(self.rng.randrange(1, 5))]

    def send_one(self, lies=0.0, spoiled=0.0, messages=None, to=None):
        m = self.rng.choice(messages or self.messages_to('broker'))
        data, fds = self.compose(m, lies)
        if self.rng.random() < spoiled:
            data, fds = self.spoil(data, fds)
        sent = self.send(data, fds, to)
        for fd in fds:
            os.close(fd)
        return sent

    # The life of the process.

    def start(self):
        _, values = self.receive(60)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if self.kind != 'capture' and values['uid'] != KEEP_ID:
            os.setgroups([])
            os.setgid(values['gid'])
            os.setuid(values['uid'])
        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_DUMPABLE, 1)
        # setuid() has cleared it. No process of the storm outlives the broker.
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    def is_over(self):
        return time.monotonic() > self.end

    def beat(self):
        """capture: the heartbeat, as an honest one."""
        if self.kind == 'capture' and self.pages:
            page = self.page()
            page[:8] = struct.pack('=Q', time.monotonic_ns())

    def page(self):
        fd = self.pages[0]
        return mmap.mmap(fd, os.fstat(fd).st_size)

    def live(self, each, answers=1.0):
        """Answers the broker with this probability, and calls each(), until the end."""
        while not self.is_over():
            self.beat()
            got = self.receive(self.rng.choice((0, 0, 0.02)))
            if got and self.rng.random() < answers:
                self.answer(*got)
            each()


# Messages, and fields of them, that may come at any time, and be anything.
FREE = {'CHUNK': (), 'CHUNK_LOST': (), 'RECORDING_CHUNK': ('recording',),
        'RECORDING_LOST': ('recording',), 'RECORDING_CLOSED': ('recording',),
        'FILE_REQUEST': ('request', 'start', 'end', 'name'), 'UNWIND_STATS': ('counts',),
        'RING_BROKEN': ('id',), 'TARGET_STATE': ('error',),
        'SPOOL': ('counts',), 'LIMITED': (), 'CLOCK': ('ahead_s',)}


def do_lie(t):
    """Keeps the rules that the broker can check. What it says is not so."""
    t.send_values('READY')
    free = [m for m in t.messages_to('broker') if m.name in FREE]

    def each():
        m = t.rng.choice(free)
        if m.name == 'FILE_REQUEST' and t.is_waiting:
            return
        t.is_waiting |= m.name == 'FILE_REQUEST'
        values, fds = t.truth(m.name)
        for name, _, _, is_text in m.fields:
            if name.partition('.')[0] in FREE[m.name] and t.rng.random() < 0.5:
                values[name] = t.text() if is_text else t.number()
        t.send(m.pack(values), fds)
        for fd in fds:
            os.close(fd)
        time.sleep(t.rng.choice((0, 0.01)))
    while not t.targets + t.seqs and not t.is_over():
        got = t.receive(0.05)
        if got:
            t.answer(*got)
    t.live(each)


def do_lie_often(t):
    t.send_values('READY')
    t.live(lambda: t.send_one(lies=0.3, spoiled=0.1), answers=0.7)


def do_any_order(t):
    """Every valid message, at any time."""
    t.send_values('READY')
    t.live(t.send_one, answers=0.5)


def do_spy(t):
    """unwind: asks for, and speaks of, the targets of other users."""
    if t.kind != 'unwind':
        do_lie_often(t)
        return
    t.send_values('READY')
    while not t.targets and not t.is_over():
        got = t.receive(0.05)
        if got:
            t.answer(*got)
    # The bystander is older than the victims. A newer target may be this user's.
    other = t.rng.randrange(1, max(2, min(t.targets or [1])))
    name = t.rng.choice(('FILE_REQUEST', 'FILE_REQUEST', 'CHUNK', 'CHUNK_LOST', 'SESSION_CLOSED',
                         'UNWIND_STATS', 'RECORDING_CLOSED'))
    values, fds = t.truth(name)
    values.update(target=other, id=other)
    if name == 'FILE_REQUEST':
        values['kind'] = t.rng.choice((1, 6, 7))
        t.spied = values['request']
    t.send(next(m for m in t.table if m.name == name).pack(values), fds)
    t.live(lambda: None)


def do_read_memory(t):
    """unwind: asks for memory of its target that is no code, such as its stack."""
    if t.kind != 'unwind':
        do_lie_often(t)
        return
    t.send_values('READY')

    def each():
        if t.is_waiting or not t.targets:
            return
        values, _ = t.truth('FILE_REQUEST')
        # A new target may be another process.
        values.update(target=t.targets[-1], kind=1, name=b'')
        ranges = re.findall(r'^([0-9a-f]+)-([0-9a-f]+) ..-', t.maps or '', re.M)
        if ranges:
            start, end = t.rng.choice(ranges)
            values.update(kind=2, start=int(start, 16), end=int(end, 16))
            t.no_code = values['request']
        t.is_waiting = True
        t.send(next(m for m in t.table if m.name == 'FILE_REQUEST').pack(values))
    t.live(each)


def do_wrong_way(t):
    """Messages that the broker sends, or that another child sends."""
    if t.rng.random() < 0.5:
        t.send_values('READY')
    t.live(lambda: t.send_one(messages=t.table))


def do_mute(t):
    """Says nothing, not even that it is ready. capture shows a heartbeat all the same."""
    while True:
        t.beat()
        time.sleep(0.05)


def do_ready_and_mute(t):
    t.send_values('READY')
    do_mute(t)


def do_deaf(t):
    """Talks and reads nothing, so that the broker's socket to it fills."""
    t.send_values('READY')
    while True:
        t.beat()
        t.send_one()
        time.sleep(0.01)


def do_flood(t):
    """One message without a pause, as fast as the broker reads."""
    t.send_values('READY')
    while not t.is_over() and not t.targets + t.seqs:
        got = t.receive(0.05)
        if got:
            t.answer(*got)
    name = {'capture': 'TARGET_STATE', 'unwind': 'UNWIND_STATS', 'ship': 'SPOOL'}[t.kind]
    m = next(m for m in t.table if m.name == name)
    data = m.pack({'target': t.target(), 'state': 4})
    t.end = time.monotonic() + 2 * LIFE_S[1]
    while not t.is_over():
        t.beat()
        # It never waits, so that the broker always has a message to read.
        for _ in range(1000):
            t.send(data)


def do_chunks(t):
    """unwind: valid chunks without a pause."""
    if t.kind != 'unwind':
        do_lie(t)
        return
    t.send_values('READY')

    def each():
        values, fds = t.truth('CHUNK')
        values['for_server'] = 1
        if t.targets:
            t.send_values('CHUNK', fds, **values)
        for fd in fds:
            os.close(fd)
    t.live(each)


def do_recordings(t):
    """unwind: chunks of recordings without a pause."""
    if t.kind != 'unwind':
        do_lie(t)
        return
    t.send_values('READY')

    def each():
        if t.recordings:
            values, fds = t.truth('RECORDING_CHUNK')
            t.send_values('RECORDING_CHUNK', fds, **values)
            os.close(fds[0])
    t.live(each)


def do_descriptors(t):
    t.send_values('READY')

    def each():
        data, fds = t.compose(t.rng.choice(t.messages_to('broker')), 0)
        fds += [t.any_fd() for _ in range(t.rng.randrange(0, 5 - min(4, len(fds))))]
        t.send(data, fds)
        for fd in fds:
            os.close(fd)
    t.live(each)


def do_pages(t):
    """Writes nonsense into each page that it shares, and then ends in one of the ways that the
    broker looks at the page for."""
    t.send_values('READY')
    pages = [t.page()] if t.pages else []

    def each():
        for page in pages + [ring for ring in t.rings.values() if ring]:
            for _ in range(50):
                at = t.rng.choice((0, 8, 16, t.rng.randrange(len(page)))) % len(page) // 8 * 8
                size = min(8, len(page) - at)
                page[at:at + size] = t.number().to_bytes(8, sys.byteorder)[:size]
    t.beat = lambda: None
    t.live(each)
    os.kill(os.getpid(), t.rng.choice((signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT)))


def do_link(t):
    """Nonsense for the process at the other end of a ring: capture, or unwind."""
    t.send_values('READY')
    other = {'capture': 'unwind', 'unwind': 'capture'}.get(t.kind)
    messages = t.messages_to(other) or None

    def each():
        for ring in t.rings.values():
            if not ring:
                continue
            # Records whose header is right, so that their contents are read.
            at = 0
            while at + 4096 < len(ring):
                size = t.rng.choice((32, 40, 48, 400, 4000))
                ring[at:at + size] = t.rng.randbytes(size)
                ring[at:at + 16] = struct.pack('=4I', size, t.rng.randrange(11), t.target(),
                                               t.rng.choice((0, 1, 77)))
                at += size
        for link in t.links:
            try:
                t.send_one(lies=0.5, spoiled=0.05, messages=messages, to=link)
                if t.kind == 'capture':
                    head = next(m for m in messages if m.name == 'RING_HEAD')
                    t.send(head.pack({'n': t.rng.choice((4096, 1 << 16, 1 << 20))}), to=link)
            except OSError:
                t.links.remove(link)
                break
    t.live(each)


def do_exit(t):
    """Ends at any moment."""
    t.end = time.monotonic() + t.rng.choice((0, 0.01, 0.1, 0.5))
    if t.rng.random() < 0.9:
        t.send_values('READY')
        t.live(t.send_one if t.rng.random() < 0.5 else lambda: None)
    number = t.rng.choice((0, 0, signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT, signal.SIGXCPU))
    if number:
        os.kill(os.getpid(), number)
    os._exit(t.rng.choice((0, 1, 127)))


def do_keep_socket(t):
    """Ends, while a child of it has its socket and talks on. (unwind and ship cannot fork.)"""
    t.send_values('READY')
    if os.fork():
        os._exit(0)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    t.end += 1
    t.live(t.send_one)


def do_stay(t):
    """Closes its socket, ignores every signal that can be ignored, and stays."""
    t.send_values('READY')
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    t.broker.close()
    while True:
        time.sleep(1)


def do_shout(t):
    """Writes to standard error what is no line, or lines of the broker, as fast as it is read.
    capture has the broker's own."""
    if t.kind == 'capture':
        do_lie(t)
        return
    t.send_values('READY')
    os.set_blocking(2, False)

    def each():
        for _ in range(t.rng.choice((1, 300))):
            line = t.rng.choice((b'sentry-profd: warning: forged\n', b'<0>\n', b'\n', b'\0\n',
                                 b'x' * 70000, t.text() + b'\n', t.text()))
            with contextlib.suppress(BlockingIOError):
                os.write(2, line)
    t.live(each)


def do_known(t):
    """An attack of hostile.py."""
    import hostile
    names = [n for n in (*hostile.FATAL, *hostile.OTHERS) if hostile.child_of(n) == t.kind]
    hostile.broker = t.broker
    hostile.heartbeat = t.pages[0] if t.pages else -1
    hostile.TYPES.update((m.name, m.type) for m in t.table)
    name = t.rng.choice(names)
    if name != 'not ready':
        t.send_values('READY')
    if t.kind != 'ship':
        for _ in range(3):
            got = t.receive(0.2)
            if got:
                t.answer(*got)
    {**hostile.FATAL, **hostile.OTHERS}[name]()
    t.live(lambda: None)


BEHAVIOURS = {name[3:]: value for name, value in list(globals().items())
              if name.startswith('do_')}


def main():
    kind = pathlib.Path(sys.argv[0]).name.rpartition('-')[2]
    plan = json.loads((HERE / 'plan').read_text())
    if kind not in plan['hostile']:
        real = f'{plan["real"]}/sentry-profd-{kind}'
        os.execve(real, [real], dict(os.environ))
    t = Taken(kind, plan)
    name = t.rng.choice(plan['behaviours'] or list(BEHAVIOURS))
    t.say(f'{kind} {name} {os.getpid()}')
    t.start()
    try:
        BEHAVIOURS[name](t)
    except OSError:
        # The broker has closed the socket, and kills this process.
        pass
    except Exception:
        t.say(f'fault: {traceback.format_exc()!r}')
        raise


if __name__ == '__main__':
    main()
