#!/usr/bin/python3
"""sentry-profctl record beside other readers of a profile: Sentry, clients that do not read, another
daemon."""

import contextlib
import fcntl
import os
import pathlib
import struct
import termios

import control
import harness
import stranger
from harness import check, wait_for
from test_broker import message_types, take_over
from test_control import listening
from test_record import DONE, RECORD, RECORD_END, Recording, functions, stranger_recording

HOSTILE = pathlib.Path(__file__).parent / 'hostile.py'
MB = 1 << 20
BAD_VERSION, BUSY = 9, 10


def seconds(chunk):
    times = [s['timestamp'] for s in chunk['profile']['samples']]
    return min(times), max(times)


def test_beside_sentry(box):
    """A recording has its own chunks, and those for Sentry are unchanged."""
    target = box.target('unw_o2', 'spin')
    profd, ctl = listening(box, [target], '--chunk-seconds', '5')
    profd.wait_attached().wait_looks()
    first, second = (Recording(ctl.path, target.pid) for _ in range(2))
    chunks = [first.next(), first.next()]
    rest, end = first.finish()
    check(end == DONE, f'{end}')
    chunks += rest
    spans = [seconds(c) for c in chunks]
    # Each chunk begins where the last one ended: no time is missing or in two
    # chunks.
    for before, after in zip(spans, spans[1:]):
        check(before[1] == after[0], f'{spans}')
    check(len({c['profiler_id'] for c in chunks}) == 1 and
          all('leaf_spin' in functions(c) for c in chunks), 'its stacks')
    check(all(i['code_id'] for c in chunks
              for i in c['debug_meta']['images'] if i.get('code_id')) and
          any(i.get('code_id') for i in chunks[0]['debug_meta']['images']),
          'what a file has')
    other, end = second.finish()
    check(other and end == DONE and
          other[0]['profiler_id'] != chunks[0]['profiler_id'], 'another')
    profd.wait_chunks(2)
    profd.interrupt()
    written = profd.chunks
    check(chunks[0]['profiler_id'] not in {c['profiler_id'] for c in written},
          'no file has it')
    spans = [seconds(c) for c in written]
    for before, after in zip(spans, spans[1:]):
        check(before[1] == after[0], f'{spans}')


def test_who_does_not_read(box):
    """A client that does not read loses chunks and delays no other. A client
    that disconnects ends its recording."""
    target = box.target('unw_o2', 'spin')
    profd, ctl = listening(box, [target])
    profd.wait_attached().wait_looks()
    slow, other = (Recording(ctl.path, target.pid) for _ in range(2))
    count = 0
    while count < 14:
        check(isinstance(other.next(), dict), 'it goes on')
        count += 1
    chunks, end = slow.finish()
    check(0 < len(chunks) < count and end == DONE,
          f'{len(chunks)} of {count}, {end}')
    slow.close()
    for _ in range(3):
        fourth = wait_for(lambda: three(ctl.path, target.pid), 'three more')
        fifth = Recording(ctl.path, target.pid)
        check(fifth.result == 10 and fifth.socket is None, f'{fifth.result}')
        for r in fourth:
            r.close()
    check(other.finish()[1] == DONE, 'its end')
    profd.interrupt()


def made_by(box, target, n, size, more=0):
    """A daemon whose unwind sends n chunks of size bytes, and pages of so many bytes behind the end
    of each, as soon as a recording begins."""
    directory = take_over(box, 'unwind', HOSTILE.read_text())
    (directory / 'types').write_text('\n'.join(message_types()))
    (directory / 'recorded').write_text(f'{n} {size} {more}')
    profd, ctl = listening(box, [target], '--leak-check', 'attach',
                           exe=directory / 'sentry-profd')
    profd.exes = directory
    return profd, ctl


def held(profd):
    """The memory of the chunks that the broker holds, in bytes."""
    chunks = {}
    for fd, kind in harness.descriptors(profd.pid).items():
        if kind.startswith('/memfd:chunk'):
            with contextlib.suppress(FileNotFoundError):
                st = os.stat(f'/proc/{profd.pid}/fd/{fd}')
                chunks[st.st_ino] = st.st_blocks * 512
    return sum(chunks.values())


def test_who_never_reads(box):
    """The chunks for all recordings of a user have 16 MB of memory at most; those of a reader that
    does not read are dropped after 5 s, and counted."""
    size = 3 * MB
    profd, ctl = made_by(box, target := box.target('shares'), 20, size)
    readers = [Recording(ctl.path, target.pid) for _ in range(2)]
    most = 0

    def are_dropped():
        nonlocal most
        now = held(profd)
        most = max(most, now)
        return most > 12 * MB and now == 0
    wait_for(are_dropped, 'the chunks are dropped')
    # The broker has one more in its hand when it receives it.
    check(most <= 16 * MB + size, f'{most} bytes held')
    for r in readers:
        chunks, end = r.finish()
        check((chunks, end, r.lost) == ([], DONE, 20), f'{chunks} {end} {r.lost}')
    check(sum(r.dropped for r in readers) >= 1, 'no chunk had begun')
    profd.interrupt()


def test_another_user_who_never_reads(box):
    """What waits for one user takes no room from others."""
    stranger.need_root()
    target = stranger.target(box, 'shares')
    profd, ctl = made_by(box, target, 3, 5 * MB)
    theirs = stranger_recording(ctl.path, target.pid)
    wait_for(lambda: held(profd) == 15 * MB, 'theirs wait')
    reader = Recording(ctl.path, target.pid)
    for i in range(3):
        check(reader.take() == bytes([i]) * (5 * MB), f'chunk {i}')
    check(reader.finish() == ([], DONE) and reader.lost == 0, f'{reader.lost} lost')
    theirs.close()
    wait_for(lambda: held(profd) == 0, 'theirs are dropped')
    profd.interrupt()


def test_who_reads_late(box):
    """The chunks that were made before the reader read arrive whole and in order."""
    profd, ctl = made_by(box, target := box.target('shares'), 3, 4 * MB + 1)
    reader = Recording(ctl.path, target.pid)
    wait_for(lambda: held(profd) > 12 * MB, 'all wait')
    for i in range(3):
        check(reader.take() == bytes([i]) * (4 * MB + 1), f'chunk {i}')
    check(reader.finish() == ([], DONE) and reader.lost == 0, f'{reader.lost} lost')
    profd.interrupt()


def test_memory_behind_the_end(box):
    """A small chunk that has 32 MB of memory is lost."""
    profd, ctl = made_by(box, target := box.target('shares'), 2, 1, 32 * MB)
    reader = Recording(ctl.path, target.pid)
    wait_for((profd.exes / 'sent').exists, 'the chunks')
    check(reader.finish() == ([], DONE) and reader.lost == 2, f'{reader.lost} lost')
    profd.interrupt()


def test_who_closes(box):
    """Closing the socket of a recording ends the recording, though the connection stays."""
    target = box.target('unw_o2', 'spin')
    profd, ctl = listening(box, [box.napper()])
    reader = Recording(ctl.path, target.pid)
    reader.next()
    reader.socket.close()
    wait_for(lambda: ctl.target(target.pid) is None, 'it is no target any more')
    reader.control.close()
    profd.interrupt()


def test_who_leaves_sockets_unread(box):
    """Messages that wait in the sockets of recordings that have ended count, until the sockets are
    closed."""
    profd, ctl = made_by(box, target := box.target('shares'), 1, 3000)
    ended = []
    while (reader := Recording(ctl.path, target.pid)).result != BUSY:
        check(reader.result == 0 and len(ended) < 8, f'{reader.result} after {len(ended)}')
        wait_for(lambda s=reader.socket: unread(s) == 16 + 3000, 'the chunk is sent')
        reader.control.send(control.request(RECORD_END))
        control.answer(reader.control)
        wait_for(lambda s=reader.socket: unread(s) == 16 + 3000 + 16, 'the end is sent')
        reader.control.close()
        ended.append(reader)
    check(len(ended) == 8 and 'without reading them' in reader.text, f'{len(ended)}: {reader.text}')
    for r in ended:
        r.socket.close()
    again = wait_for(lambda: one(ctl.path, target.pid), 'another recording')
    again.close()
    profd.interrupt()


def test_an_older_program(box):
    """A program of an earlier version of the protocol would read descriptors of chunks."""
    target = box.target('shares')
    profd, ctl = listening(box, [target])
    profd.wait_attached()
    old = Recording(ctl.path, target.pid, RECORD, version=5)
    check(old.result == BAD_VERSION and old.socket is None and 'update this program' in old.text,
          f'{old.result} {old.text}')
    profd.interrupt()


def unread(s):
    """The bytes of all messages that wait in a socket."""
    return struct.unpack('i', fcntl.ioctl(s, termios.FIONREAD, bytes(4)))[0]


def one(path, pid):
    """Makes a recording; None while the daemon refuses it."""
    made = Recording(path, pid)
    if made.result == 0:
        return made
    made.control.close()
    return None


def three(path, pid):
    """Makes three recordings; None while others have not ended yet."""
    made = [Recording(path, pid) for _ in range(3)]
    if all(r.result == 0 for r in made):
        return made
    for r in made:
        if r.socket is not None:
            r.close()
    return None


def test_another_daemon(box):
    """sentry-profd --pid for a process that another daemon profiles names the
    commands to use instead."""
    target = box.target('unw_o2', 'spin')
    profd, _ = listening(box, [target])
    profd.wait_attached()
    other = box.start([harness.BUILD / 'sentry-profd', '--pid', target.pid,
                       '--duration', '1'])
    other.wait()
    check(f'sentry-profctl stack {target.pid}, or record {target.pid} -o' in
          other.stderr, other.stderr)
    profd.interrupt()


if __name__ == '__main__':
    harness.main(globals())
