#!/usr/bin/python3
"""Chunks that wait in the spool while the server is away, and arrive when it
is back.
"""

import contextlib
import gzip
import os
import signal
import socket
import subprocess

import chunk_rules
import harness
from account import check_counts
from envelopes import KEY
from harness import Skip, check, wait_for
from layout import Layout


def dsn_of(port):
    return f'http://{KEY}@localhost:{port}/42'


def profd_with(box, spool, port, *args, **options):
    return box.profd([box.napper()], '--chunk-seconds', '1', '--spool',
                     spool, '--dsn', dsn_of(port), *args, **options)


def waiting(spool):
    return sorted(p.name for p in spool.glob('*.gz'))


def ids(envelopes):
    return [e.chunk['chunk_id'] for e in envelopes]


def spool_of_a_run(box, spool, port, n=2):
    """Returns the ids of the chunks that a run without a server leaves in the
    spool."""
    profd = profd_with(box, spool, port)
    profd.wait_chunks(n)
    profd.interrupt()
    chunks = check_counts(profd)
    check(chunks['spooled'] == chunks['made'] and not chunks['discarded'],
          f'not all of them wait: {chunks}')
    check(len(waiting(spool)) == chunks['made'], 'files')
    check(profd.stats['spool']['waiting'] == chunks['made'], 'stats')
    check(profd.stderr.count('does not answer') == 1,
          f'the outage is told once: {profd.stderr}')
    return ids(profd.envelopes)


def test_another_run_sends_them(box):
    spool, port = box.dir / 'spool', harness.free_port()
    target = box.napper()
    layout = Layout(target.pid)
    profd = box.profd([target], '--chunk-seconds', '1', '--spool', spool,
                      '--dsn', dsn_of(port))
    profd.wait_chunks(2)
    profd.interrupt()
    left = ids(profd.envelopes)
    check(spool.stat().st_mode & 0o777 == 0o700, 'others can look into it')
    check(len(waiting(spool)) == len(left), f'{waiting(spool)}')
    for name in waiting(spool):
        line = gzip.decompress((spool / name).read_bytes()).split(b'\n')[0]
        check(b'sent_at' not in line, f'a time in {line}')
    server = box.server(tls=False, port=port)
    profd = profd_with(box, spool, port)
    wait_for(lambda: not waiting(spool), 'an empty spool')
    profd.interrupt()
    chunks = check_counts(profd)
    server.check_requests()
    got = ids(server.envelopes)
    check(sorted(got) == sorted(left + ids(profd.envelopes)),
          'not each of them once')
    check(chunks['spooled'] == 0, f'{chunks}')
    check(profd.stats['spool']['sent'] == len(left), f'{profd.stats["spool"]}')
    for e in server.envelopes:
        if e.chunk['chunk_id'] in left:
            found = chunk_rules.problems(e, layout, sent=True)
            check(found == [], f'{found[:5]}')


def test_server_goes_and_comes_back(box):
    spool, port = box.dir / 'spool', harness.free_port()
    servers = [box.server(tls=False, port=port)]
    profd = profd_with(box, spool, port)
    for _ in range(2):
        n = len(servers[-1].requests)
        wait_for(lambda: len(servers[-1].requests) > n, 'a chunk arrives')
        servers[-1].program.end()
        wait_for(lambda: waiting(spool), 'a chunk waits')
        servers.append(box.server(tls=False, port=port))
        wait_for(lambda: not waiting(spool), 'none waits')
    profd.interrupt()
    chunks = check_counts(profd)
    check(not chunks['discarded'], f'{chunks}')
    # A chunk that was being sent when the server ended may have arrived.
    got = [i for s in servers for i in ids(s.envelopes)]
    check(set(got) == set(ids(profd.envelopes)), 'not all have arrived')
    check(len(got) - len(set(got)) <= 2, 'some came again and again')
    check(profd.stats['spool']['sent'] == chunks['spooled'] > 0, f'{chunks}')
    check('answers again' in profd.stderr, profd.stderr)


def test_what_is_not_right_is_set_aside(box):
    spool, port = box.dir / 'spool', harness.free_port()
    left = spool_of_a_run(box, spool, port, n=3)
    names = waiting(spool)
    damaged = bytearray((spool / names[0]).read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (spool / names[0]).write_bytes(damaged)
    (spool / 'of somebody else').write_text('?')
    (spool / ('.' + names[0])).write_text('never finished')
    server = box.server(tls=False, port=port)
    profd = profd_with(box, spool, port)
    wait_for(lambda: not waiting(spool), 'an empty spool')
    profd.interrupt()
    check_counts(profd)
    server.check_requests()
    check(set(ids(server.envelopes)) == set(left[1:] + ids(profd.envelopes)),
          'not all, or the damaged one')
    check(profd.stats['spool']['set_aside'] == 2, f'{profd.stats["spool"]}')
    check(profd.stderr.count('set aside') == 2, profd.stderr)
    check(sorted(p.name for p in spool.iterdir()) ==
          sorted([names[0] + '.bad', 'of somebody else.bad']), 'files')


def test_refused_ones_do_not_come_back(box):
    spool, port = box.dir / 'spool', harness.free_port()
    left = spool_of_a_run(box, spool, port)
    server = box.server(tls=False, port=port, status=500)
    profd = profd_with(box, spool, port)
    wait_for(lambda: not waiting(spool), 'an empty spool')
    profd.interrupt()
    check_counts(profd)
    got = ids(server.envelopes)
    check(len(got) == len(set(got)), 'one was sent again')
    check(profd.stats['spool']['send_error'] == len(left), 'not counted')


def test_one_that_gets_no_answer(box):
    """A firewall may refuse its contents, or the connection be too slow for it."""
    spool, port = box.dir / 'spool', harness.free_port()
    left = spool_of_a_run(box, spool, port, n=3)
    server = box.server(tls=False, port=port)
    server.tell(never=left[0])
    profd = profd_with(box, spool, port)
    # That one is in the file of a request, too.
    wait_for(lambda: set(left[1:]) <= set(ids(server.envelopes)), 'the others arrive')
    profd.interrupt()
    check(not check_counts(profd)['discarded'], f'{profd.stats["chunks"]}')
    check(any(left[0] in name for name in waiting(spool)), 'it does not wait')
    server.tell(never=None)
    profd = profd_with(box, spool, port)
    wait_for(lambda: not waiting(spool), 'an empty spool')
    profd.interrupt()
    check_counts(profd)


def test_chunks_of_another_dsn_wait(box):
    spool, port = box.dir / 'spool', harness.free_port()
    left = spool_of_a_run(box, spool, port)
    other = box.server(tls=False)
    profd = profd_with(box, spool, other.port)
    wait_for(lambda: len(other.requests) >= 2, 'its own chunks')
    profd.interrupt()
    check(not set(ids(other.envelopes)) & set(left), 'one server got another\'s')
    check(len(waiting(spool)) == len(left), 'they do not wait any more')


@contextlib.contextmanager
def small_disk(path, size):
    path.mkdir()
    r = subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={size}', 'tmpfs',
                        path], capture_output=True, text=True)
    if r.returncode != 0:
        raise Skip(f'no tmpfs: {r.stderr.strip()}')
    try:
        yield path
    finally:
        subprocess.run(['umount', '-l', path], check=True)


def test_full_disk(box):
    if os.geteuid() != 0:
        raise Skip('mounts a file system')
    port = harness.free_port()
    with small_disk(box.dir / 'disk', '16k') as disk:
        (disk / 'file').write_bytes(bytes(8192))
        profd = profd_with(box, disk / 'spool', port)
        profd.wait_chunks(4)
        server = box.server(tls=False, port=port)
        wait_for(lambda: len(server.requests) >= 4 and
                 not waiting(disk / 'spool'), 'they arrive')
        profd.interrupt()
        chunks = check_counts(profd)
        check(not chunks['discarded'], f'{chunks}')
        check(sorted(ids(server.envelopes)) == sorted(ids(profd.envelopes)),
              'not each of them once')
        check(profd.stderr.count('chunks wait in memory') == 1, profd.stderr)


def test_one_daemon_for_a_spool(box):
    spool, server = box.dir / 'spool', box.server(tls=False)
    first = profd_with(box, spool, server.port).wait_attached()
    second = profd_with(box, spool, server.port)
    second.wait_chunks()
    check('another sentry-profd has the spool' in second.stderr, second.stderr)
    for profd in (first, second):
        profd.interrupt()
        check_counts(profd)
    check(waiting(spool) == [], 'it was used')


def test_a_spool_that_cannot_be(box):
    (box.dir / 'file').write_text('')
    profd = profd_with(box, box.dir / 'file', 1)
    check(profd.wait() == 1 and '--spool: ' in profd.stderr, profd.stderr)
    profd = profd_with(box, box.dir / 'no' / 'such' / 'spool', 1)
    check(profd.wait() == 1 and '--spool: ' in profd.stderr, profd.stderr)
    if os.geteuid() == 0:
        (box.dir / 'stranger').mkdir()
        os.chown(box.dir / 'stranger', 12345, 12345)
        profd = profd_with(box, box.dir / 'stranger', 1)
        check(profd.wait() == 1 and 'belongs to uid 12345' in profd.stderr,
              profd.stderr)


def test_a_second_signal(box):
    """A second signal ends the wait for the server, and the remaining chunks
    go to the spool."""
    spool = box.dir / 'spool'
    with contextlib.closing(socket.socket()) as silent:
        silent.bind(('127.0.0.1', 0))
        silent.listen(8)
        profd = profd_with(box, spool, silent.getsockname()[1])
        profd.wait_chunks(2)
        profd.signal(signal.SIGINT)
        wait_for(lambda: not profd.helpers()['capture'], 'sampling ends')
        profd.interrupt()
    chunks = check_counts(profd)
    check(chunks['spooled'] == chunks['made'] and not chunks['discarded'],
          f'not all of them wait: {chunks}')
    check(len(waiting(spool)) == chunks['made'], 'files')


def test_a_second_signal_with_many_chunks(box):
    """Also those chunks go to the spool that no ship has got yet."""
    spool = box.dir / 'spool'
    targets = [box.napper() for _ in range(30)]
    with contextlib.closing(socket.socket()) as silent:
        silent.bind(('127.0.0.1', 0))
        silent.listen(8)
        profd = box.profd(targets, '--chunk-seconds', '1', '--spool', spool, '--dsn',
                          dsn_of(silent.getsockname()[1]), '--shutdown-timeout', '60')
        # A ship writes the files of those that it has: 24 at a time.
        profd.wait_chunks(24)
        # The end makes one more chunk of each process.
        profd.signal(signal.SIGINT)
        wait_for(lambda: not profd.helpers()['capture'], 'sampling ends')
        profd.interrupt()
    chunks = check_counts(profd)
    check(chunks['made'] > 24, f'{chunks}')
    check(chunks['spooled'] == chunks['made'] and not chunks['discarded'],
          f'not all of them wait: {chunks}')


if __name__ == '__main__':
    harness.main(globals())
