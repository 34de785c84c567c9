#!/usr/bin/python3
"""A child of the broker under an attacker's control, for test_broker.py.

It replaces sentry-profd-capture, -unwind or -ship. The first process makes the
attack that the file "attack" next to its executable names (a key of ATTACKS).
Afterwards, and in later processes, it reads the broker's messages until the
broker has ended. A fault of an attack itself is in the file "error".
"""

import ctypes
import fcntl
import json
import os
import pathlib
import select
import socket
import struct
import sys
import time
import traceback

HERE = pathlib.Path(__file__).parent
broker = None
# of daemon/msg/msg.h; the test writes the names to a file next to this one
TYPES = {}
ID = b'0123456789abcdef' * 2 + b'\0'
PLATFORM = b'rust'.ljust(256, b'\0')
HUGE = 2**64 - 1
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | \
    fcntl.F_SEAL_SEAL


FALLOC_FL_KEEP_SIZE = 1
libc = ctypes.CDLL(None)


def send(name, layout, *values, fds=()):
    body = struct.pack('=' + layout, *values)
    header = struct.pack('=II', TYPES[name], 8 + len(body))
    socket.send_fds(broker, [header + body], fds)


def memfd(size, seals=SEALS):
    fd = os.memfd_create('chunk', os.MFD_ALLOW_SEALING)
    os.write(fd, b'x' * size)
    if seals:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def refused(**question):
    """Waits for the broker's answer EINVAL without a descriptor. Skips the
    broker's other messages."""
    request_file(**question)
    while True:
        data, fds, _, _ = socket.recv_fds(broker, 16384, 4)
        for fd in fds:
            os.close(fd)
        if struct.unpack_from('=I', data)[0] == TYPES['FILE_REPLY']:
            break
        obey(data)
    request, error = struct.unpack_from('=Ii', data, 8)
    (HERE / 'answer').write_text(f'{request} {error} {len(fds)}')


# Padded to a multiple of 8, as the compiler pads the struct.
CHUNK = 'IIQQQQ33s256s7x'


def chunk(target=1, size=2, told=None, seals=SEALS, id_=ID, platform=PLATFORM,
          transaction=0, file_size=0, file=None, anchor_size=0):
    fds = [memfd(size, seals)]
    if file is not None:
        fds.append(memfd(file))
    send('CHUNK', CHUNK, target, 1, size if told is None else told,
         transaction, file_size, anchor_size, id_, platform, fds=fds)


def request_file(target=1, kind=1, start=0, end=0, build_id=b''):
    send('FILE_REQUEST', 'IIIIQQ256s', 1, kind, target, 0, start, end, build_id)


def flood():
    """Sends requests until the broker has two at once, and kills this process.
    """
    while True:
        request_file()


def keep_socket():
    """Exits, while a child of this process keeps the socket open."""
    if os.fork() != 0:
        sys.exit()


def shrink_heartbeat():
    try:
        os.ftruncate(heartbeat, 0)
    except PermissionError:
        sys.exit()


def no_result():
    """Sends results of envelopes from now on."""
    global result
    result = 99


# After each of these the broker kills the sender.
FATAL = {
    'not ready': lambda: request_file(),
    'ready: twice': lambda: send('READY', 'I', 0),
    'short': lambda: broker.send(b'\1'),
    'unknown type': lambda: broker.send(struct.pack('=II', 999, 8)),
    'wrong size': lambda: send('CHUNK_LOST', 'I', 1),
    'too large': lambda: broker.send(bytes(20000)),
    'descriptors': lambda: socket.send_fds(
        broker, [struct.pack('=II', 999, 8)], [0, 1, 2, 0, 1]),
    # of unwind
    'file request: flood': flood,
    'file request: of nobody': lambda: request_file(target=7),
    'file request: no kind': lambda: request_file(kind=10),
    # FILE_KIND_PID_FILE, which only the broker may use.
    'file request: a file of the host': lambda: request_file(
        kind=8, build_id=b'/etc/passwd'),
    # FILE_KIND_EXE_LINK, which only the broker may use.
    'file request: a link of the host': lambda: request_file(
        kind=9, build_id=b'/bin/sh'),
    'chunk: no descriptor': lambda: send('CHUNK', CHUNK, 1, 1, 2, 0, 0, 0, ID,
                                         PLATFORM),
    'chunk: a transaction for nobody': lambda: chunk(anchor_size=3, file=3),
    'chunk: no descriptor for the file': lambda: chunk(file_size=2),
    'chunk: a file of another size': lambda: chunk(file_size=2, file=3),
    'chunk: a descriptor for no file': lambda: chunk(file=2),
    'chunk: not sealed': lambda: chunk(seals=0),
    'chunk: empty': lambda: chunk(size=0),
    'chunk: larger than it is': lambda: chunk(told=3),
    'chunk: all a transaction': lambda: chunk(transaction=2),
    'chunk: of nobody': lambda: chunk(target=2),
    'chunk: bad id': lambda: chunk(id_=b'../..'.ljust(33, b'\0')),
    'chunk: endless id': lambda: chunk(id_=b'a' * 33),
    'chunk: endless platform': lambda: chunk(platform=b'r' * 256),
    'lost: no reason': lambda: send('CHUNK_LOST', 'II', 1, 31),
    'lost: huge reason': lambda: send('CHUNK_LOST', 'II', 1, 2**32 - 1),
    'lost: of nobody': lambda: send('CHUNK_LOST', 'II', 0, 1),
    'recorded: of nobody': lambda: send('RECORDING_CHUNK', 'IIQ', 9, 1, 2,
                                        fds=[memfd(2)]),
    'recorded: not sealed': lambda: send('RECORDING_CHUNK', 'IIQ', 1, 1, 2,
                                         fds=[memfd(2, None)]),
    'recorded: larger than it is': lambda: send('RECORDING_CHUNK', 'IIQ', 1, 1, 3,
                                                fds=[memfd(2)]),
    'recorded: no descriptor': lambda: send('RECORDING_CHUNK', 'IIQ', 1, 1, 2),
    'recording lost: of nobody': lambda: send('RECORDING_LOST', 'II', 9, 1),
    'recording closed: of nobody': lambda: send('RECORDING_CLOSED', 'II', 9, 1),
    'measured: twice': lambda: [send('USAGE_DONE', 'I', 0) for _ in range(2)],
    'table: not requested': lambda: send('TABLE_DONE', 'I', 0),
    'opened: of nobody': lambda: send('SESSION_OPENED', 'I', 9),
    'opened: twice': lambda: [send('SESSION_OPENED', 'I', 1)
                              for _ in range(2)],
    'closed: not open': lambda: send('SESSION_CLOSED', 'I', 1),
    'closed: of nobody': lambda: send('SESSION_CLOSED', 'I', 9),
    'seen: not asked': lambda: seen(1),
    'stats: of nobody': lambda: send('UNWIND_STATS', 'II24Q', 9, 0,
                                     *[HUGE] * 24),
    # of capture
    'state: of nobody': lambda: send('TARGET_STATE', 'IIiIiII', 9, 1, 0, 0, 0, 0, 0),
    'state: none': lambda: send('TARGET_STATE', 'IIiIiII', 1, 99, 0, 0, 0, 0, 0),
    'ring: nobody\'s': lambda: send('RING_MADE', 'I', 9, fds=[memfd(1)]),
    'ring: no descriptor': lambda: send('RING_MADE', 'I', 1),
    'done: early': lambda: send('CAPTURE_DONE', 'I', 0),
    # of ship
    'done: unknown': lambda: send('ENVELOPE_DONE', 'QII', 77, 1, 0),
    'result: unknown': no_result,
    'written: unknown': lambda: send('ENVELOPE_WRITTEN', 'QiI', 77, 0, 0),
}


def closed_twice():
    send('SESSION_OPENED', 'I', 1)
    for _ in range(2):
        send('SESSION_CLOSED', 'I', 1)
    send('CHUNK_LOST', 'II', 1, 1)
    chunk()


def seen(number):
    """Answers that a file was read, and has nothing."""
    send('FILE_SEEN', '8I256s256s', number, 1, 0, 0, 0, 0, 0, 0, b'', b'')


def closing():
    """Closes its first session, and from now on each session that is opened.
    """
    global is_closing
    is_closing = True
    send('SESSION_OPENED', 'I', 1)
    send('SESSION_CLOSED', 'I', 1)


def huge_stats():
    send('UNWIND_STATS', 'II24Q', 1, 0, *[HUGE] * 24)


def states():
    """Sends every state after every other one, all of them wrong."""
    for first in range(1, 8):
        for second in range(1, 8):
            for state in (first, second):
                send('TARGET_STATE', 'IIiIiII', 1, state, -2**31, 1, 11, 0, 0)


def rings():
    for _ in range(3):
        send('RING_MADE', 'I', 1, fds=[memfd(1)])
    for _ in range(3):
        send('RING_BROKEN', 'I', 1)
    send('RING_BROKEN', 'I', 9)


def spy():
    """Asks for the files that the test names in "ask", and writes the answers into "spied": the
    error, and how the text of the descriptor begins. Keeps its first session open."""
    send('SESSION_OPENED', 'I', 1)
    asked = False
    while True:
        if not asked and (HERE / 'ask').exists():
            kind, start, end = json.loads((HERE / 'ask').read_text())
            (HERE / 'ask').unlink()
            request_file(kind=kind, start=start, end=end)
            asked = True
        if not select.select([broker], [], [], 0.05)[0]:
            continue
        data, fds, _, _ = socket.recv_fds(broker, 16384, 4)
        if not data:
            sys.exit()
        what = struct.unpack_from('=I', data)[0]
        if what == TYPES['FILE_REPLY']:
            text = os.pread(fds[0], 64, 0).decode('latin1') if fds else None
            answer = HERE / 'answered'
            answer.write_text(json.dumps([struct.unpack_from('=i', data, 12)[0], text]))
            os.rename(answer, HERE / 'spied')
            asked = False
        elif what != TYPES['SESSION_CLOSE']:
            obey(data)
        for fd in fds:
            os.close(fd)


def await_message(name):
    """Skips the broker's messages up to one of this type, and returns that."""
    while True:
        data, fds, _, _ = socket.recv_fds(broker, 16384, 4)
        for fd in fds:
            os.close(fd)
        if not data:
            sys.exit()
        if struct.unpack_from('=I', data)[0] == TYPES[name]:
            return data


def late_end():
    """Closes the session of a recording, and reports the end of the recording when the broker has
    freed the target, as if the process had ended before this one read RECORDING_OPEN."""
    send('SESSION_OPENED', 'I', 1)
    target, recording = struct.unpack_from('=II', await_message('RECORDING_OPEN'), 8)
    send('SESSION_CLOSED', 'I', target)
    await_message('SESSION_FORGET')
    send('RECORDING_CLOSED', 'II', target, recording)


# For these the broker does not kill the sender, or the sender ends by itself.
OTHERS = {
    'chunk': chunk,
    'closed twice': closed_twice,
    'closing': closing,
    'huge stats': huge_stats,
    'states': states,
    'rings': rings,
    'keep socket': keep_socket,
    'shrink': shrink_heartbeat,
    'nothing': lambda: None,
}

# What test_owners.py and test_record.py run.
OF_ONE_TEST = {'spy': spy, 'late end': late_end}

# Requests for a file with an invalid name or range. The broker answers each.
REFUSED = {
    'file request: one byte': lambda: refused(kind=3, build_id=b'ab'),
    'file request: path': lambda: refused(kind=3, build_id=b'../../etc/passwd'),
    'file request: endless id': lambda: refused(kind=3, build_id=b'a' * 256),
    'file request: upside down': lambda: refused(kind=2, start=8192, end=4096),
    'file request: no page': lambda: refused(kind=2, start=4097, end=8192),
    'file request: no name': lambda: refused(kind=4, start=4096, end=8192),
}

OF_CAPTURE = ('state', 'ring', 'done', 'states', 'rings', 'shrink', 'keep socket')


def child_of(attack):
    """Returns the kind of child that makes this attack."""
    if attack.endswith(': unknown'):
        return 'ship'
    return 'capture' if attack.partition(':')[0] in OF_CAPTURE else 'unwind'


heartbeat = -1
is_closing = False
result = 0


def record(target, recording):
    """Sends the chunks of a recording that the file "recorded" next to this one names: how many, of
    how many bytes, and how many bytes more in pages behind the end."""
    plan = HERE / 'recorded'
    n, size, more = map(int, plan.read_text().split() if plan.exists() else (0, 0, 0))
    for i in range(n):
        fd = os.memfd_create('chunk', os.MFD_ALLOW_SEALING)
        os.write(fd, bytes([i]) * size)
        if more and libc.fallocate(fd, FALLOC_FL_KEEP_SIZE, ctypes.c_long(size),
                                   ctypes.c_long(more)) < 0:
            raise LookupError('fallocate')
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)
        send('RECORDING_CHUNK', 'IIQ', target, recording, size, fds=[fd])
        os.close(fd)
    (HERE / 'sent').touch()


def obey(data):
    """Sends the least that the broker waits for; a ship sends nonsense."""
    kind, _, what = struct.unpack_from('=IIQ', data.ljust(16, b'\0'))
    if kind == TYPES['CAPTURE_STOP']:
        sys.exit()
    if kind == TYPES['SESSION_OPEN']:
        send('SESSION_OPENED', 'I', what & 0xffffffff)
        with open(HERE / 'opened', 'a', encoding='utf-8') as opened:
            opened.write(f'{time.monotonic()}\n')
        if is_closing:
            send('SESSION_CLOSED', 'I', what & 0xffffffff)
    if kind == TYPES['FILE_LOOK']:
        seen(what & 0xffffffff)
    if kind == TYPES['SESSION_CLOSE']:
        send('SESSION_CLOSED', 'I', what & 0xffffffff)
    if kind == TYPES['RECORDING_OPEN']:
        record(*struct.unpack_from('=II', data, 8))
    if kind == TYPES['RECORDING_CLOSE']:
        send('RECORDING_CLOSED', 'II', *struct.unpack_from('=II', data, 8))
    if kind == TYPES['ENVELOPE']:
        send('ENVELOPE_WRITTEN', 'QiI', what, -2**31, 2**32 - 1)
        send('ENVELOPE_DONE', 'QII', what, result, 2**32 - 1)


def main():
    global broker, heartbeat
    broker = socket.socket(fileno=3)
    names = (HERE / 'types').read_text().split()
    TYPES.update((name, n) for n, name in enumerate(names, 1))
    attack = HERE / 'attack'
    data, fds, _, _ = socket.recv_fds(broker, 16384, 4)
    heartbeat = fds[0] if fds else -1
    if not attack.exists() or attack.read_text() != 'not ready':
        send('READY', 'I', 0)
    if attack.exists():
        name = attack.read_text()
        attack.unlink()
        # The first messages: targets, sessions, rings.
        if 'ship' not in sys.argv[0]:
            broker.recv(16384)
            broker.recv(16384)
        try:
            {**FATAL, **OTHERS, **REFUSED, **OF_ONE_TEST}[name]()
        except LookupError:
            # A name that does not exist, of a message or of the attack: a fault of the test.
            (HERE / 'error').write_text(traceback.format_exc())
            raise
        finally:
            (HERE / 'done').touch()
    while data:
        data, fds, _, _ = socket.recv_fds(broker, 16384, 4)
        for fd in fds:
            os.close(fd)
        obey(data)


if __name__ == '__main__':
    main()
