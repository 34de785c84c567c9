#!/usr/bin/python3
"""An unwind process that dies at a file, for test_left_out_files.py.

It replaces sentry-profd-unwind. Each process requests the program of its first
target, writes the answer to the file "answers" next to its executable (for a
number: whether a file came), and ends as the file "how" says: "WORD SIGNAL".
WORD is what it leaves in the page that it shares with the broker: "own", the
number of the file, or another number. SIGNAL is 0 for an exit. If it gets no
file, it lives on. The file "pid" has its pid.
"""

import mmap
import os
import pathlib
import resource
import socket
import struct
import sys

HERE = pathlib.Path(__file__).parent


def header(name, types, body):
    return struct.pack('=II', types.index(name) + 1, 8 + len(body)) + body


def program_range(pid):
    """Returns the address range of the code of the process's own program."""
    inode = os.stat(f'/proc/{pid}/exe').st_ino
    with open(f'/proc/{pid}/maps', encoding='utf-8') as maps:
        for line in maps:
            words = line.split()
            if int(words[4]) == inode and 'x' in words[1]:
                return [int(x, 16) for x in words[0].split('-')]
    raise ValueError(pid)


def end(page, number):
    word, signal = (HERE / 'how').read_text().split()
    page[:4] = struct.pack('=I', number if word == 'own' else int(word))
    # The crash is intended, so it needs no core dump.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if signal == '0':
        sys.exit(1)
    os.kill(os.getpid(), int(signal))


def main():
    (HERE / 'pid').write_text(str(os.getpid()))
    types = (HERE / 'types').read_text().split()
    broker = socket.socket(fileno=3)
    _, fds, _, _ = socket.recv_fds(broker, 16384, 4)
    page = mmap.mmap(fds[0], 4)
    broker.send(header('READY', types, bytes(4)))
    while True:
        data, fds, _, _ = socket.recv_fds(broker, 16384, 4)
        if not data:
            return
        kind = types[struct.unpack_from('=I', data)[0] - 1]
        if kind == 'SESSION_OPEN':
            target, pid = struct.unpack_from('=Ii', data, 8)
            broker.send(header('FILE_REQUEST', types, struct.pack(
                '=IIIIQQ256s', 1, 2, target, 0, *program_range(pid), b'')))
            broker.send(header('SESSION_OPENED', types,
                               struct.pack('=I', target)))
        if kind == 'SESSION_CLOSE':
            target, = struct.unpack_from('=I', data, 8)
            broker.send(header('SESSION_CLOSED', types,
                               struct.pack('=I', target)))
        if kind == 'FILE_REPLY':
            _, error, number = struct.unpack_from('=IiI', data, 8)
            with open(HERE / 'answers', 'a', encoding='utf-8') as answers:
                answers.write(f'{error} {int(number != 0)} {len(fds)}\n')
            if error == 0:
                end(page, number)


if __name__ == '__main__':
    main()
