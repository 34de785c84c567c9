#!/usr/bin/python3
"""Sending a chunk to a server: certificates, encodings, timeouts."""

import contextlib
import os
import pathlib
import signal
import socket
import threading

import harness
import stranger
from harness import Skip, check, wait_for
from test_control import listening, section
from test_delivery_server import KEY


def profd(box, dsn, *args, **options):
    options.setdefault('output', None)
    return box.profd([box.napper()], '--chunk-seconds', '1', '--dsn',
                     dsn, *args, **options)


def check_arrives(box, server, *args, **options):
    run = profd(box, server.dsn, *args, **options)
    wait_for(lambda: server.envelopes, 'a chunk')
    run.interrupt()
    server.check_requests()
    return run


def check_does_not(box, server, *args, **options):
    run = profd(box, server.dsn, *args, '--shutdown-timeout', '0.1', **options)
    wait_for(lambda: 'does not answer' in run.stderr, 'it is told')
    run.interrupt(status=harness.ALL_LOST)
    check(not server.envelopes, 'a chunk arrived')
    return run


def private(path):
    """The daemon's user may read the file, ship's user may not."""
    os.chmod(path, 0o600)
    return path


def test_authorities_by_option(box):
    server = box.server()
    ca = private(server.ca)
    check_arrives(box, server, '--ca-certs', ca)
    # The option takes precedence.
    env = harness.environment(SSL_CERT_FILE='/does/not/exist')
    run = check_arrives(box, box.server(tls=False), '--ca-certs', ca, env=env)
    check('SSL_CERT_FILE' not in run.stderr, run.stderr)
    check_does_not(box, box.server())


def test_authorities_by_variable(box):
    """The file of the variable is also opened with the rights of the user who
    started the daemon. ship's user may not even enter the directory."""
    first = box.server()
    path = box.dir / 'private/ca.pem'
    path.parent.mkdir(mode=0o700)
    rotate(path, pathlib.Path(first.ca))
    run, ctl = configured(box, first.dsn,
                          env=harness.environment(SSL_CERT_FILE=path))
    wait_for(lambda: first.envelopes, 'a chunk')
    first.program.end()
    second = box.server(port=first.port)
    path.write_text('-----BEGIN CERTIFICATE-----\nMII')
    warned = ctl.run('reload').stderr
    check('SSL_CERT_FILE' in warned, warned)
    wait_for(lambda: 'ca_certs cannot be used' in run.stderr, 'it is said')
    rotate(path, pathlib.Path(second.ca))
    check(not ctl.run('reload').stderr, 'nothing is wrong')
    wait_for(lambda: second.envelopes, 'a chunk after the reload')
    run.interrupt()


def test_a_variable_that_leads_nowhere(box):
    """The variable may be meant for other programs, so a wrong path is
    reported once in a line."""
    for path, why in ((box.dir / 'none', 'No such file'),
                      (box.dir, 'Is a directory')):
        run = check_arrives(box, box.server(tls=False), env=harness.environment(
            SSL_CERT_FILE=path))
        check(run.stderr.count(f'SSL_CERT_FILE: {path}: {why}') == 1,
              run.stderr)


def test_client_certificate(box):
    server = box.server(mutual=True)
    cert = server.dir / 'server.pem'
    key = private(server.dir / 'server.key')
    both = box.dir / 'both.pem'
    both.write_bytes(cert.read_bytes() + key.read_bytes())
    private(both)
    env = harness.environment(SENTRY_PROFD_SECCOMP_KILL='1', **{
        'SSL_CERT_FILE': server.ca})
    check_does_not(box, server, env=env)
    run = profd(box, server.dsn, '--client-cert', cert, '--client-key', key,
                env=env)
    wait_for(lambda: server.envelopes, 'a chunk')
    run.interrupt()
    before = len(server.envelopes)
    run = profd(box, server.dsn, '--client-cert', both, env=env)
    wait_for(lambda: len(server.envelopes) > before, 'a chunk')
    # A new ship reads the files from their beginning again.
    ship, = run.helpers()['ship']
    os.kill(ship, signal.SIGKILL)
    wait_for(lambda: run.helpers()['ship'] not in ([], [ship]), 'another')
    before = len(server.envelopes)
    wait_for(lambda: len(server.envelopes) > before, 'another chunk')
    run.interrupt()


def configured(box, dsn, env=None, **files):
    """Starts a service whose section matches a program, and which a reload
    changes."""
    exe = stranger.copy(box, ['targets/unw_o2']) / 'unw_o2'
    target = box.start([exe, 'nanosleep'])
    path = box.dir / 'profd.conf'
    path.write_text('[sentry]\n' + ''.join(f'{k} = {v}\n'
                                           for k, v in files.items()) +
                    '[profiler]\nchunk_seconds = 1\n' +
                    section('one', exe, 'autostart = yes'))
    path.chmod(0o600)
    run, ctl = listening(box, [], '--config', path, '--dsn', dsn, '--spool',
                         box.dir / 'spool', '--debug', output=None, env=env)
    ctl.wait_state(target.pid, 'profiling')
    return run, ctl


def rotate(path, *sources):
    """Replaces the file in one step, as tools that renew certificates do."""
    new = path.with_suffix('.new')
    new.write_bytes(b''.join(s.read_bytes() for s in sources))
    private(new).rename(path)


def test_authorities_are_renewed(box):
    """The server's certificate is from another authority from some day on."""
    old = box.server()
    path = box.dir / 'ca.pem'
    rotate(path, pathlib.Path(old.ca))
    run, ctl = configured(box, old.dsn, ca_certs=path)
    wait_for(lambda: old.envelopes, 'a chunk')
    old.program.end()
    new = box.server(port=old.port)
    wait_for(lambda: 'does not answer' in run.stderr, 'it is not trusted')
    check(not new.envelopes, 'a chunk arrived')
    # An incomplete file changes nothing.
    path.write_text('-----BEGIN CERTIFICATE-----\nMII')
    ctl.run('reload')
    wait_for(lambda: 'ca_certs cannot be used' in run.stderr, 'it is said')
    rotate(path, pathlib.Path(new.ca))
    check('ca_certs' not in ctl.run('reload').stderr, 'nothing is wrong')
    wait_for(lambda: new.envelopes, 'a chunk after the reload')
    # Chunks that were made meanwhile have waited.
    wait_for(lambda: not list((box.dir / 'spool').glob('*.gz')), 'all')
    # A new ship has the new authorities, too.
    ship, = run.helpers()['ship']
    os.kill(ship, signal.SIGKILL)
    before = len(new.envelopes)
    wait_for(lambda: len(new.envelopes) > before, 'a chunk of another ship')
    path.unlink()
    warned = ctl.run('reload').stderr
    check('ca_certs' in warned, warned)
    before = len(new.envelopes)
    wait_for(lambda: len(new.envelopes) > before + 1, 'it goes on')
    run.interrupt()


def test_client_certificate_is_renewed(box):
    server = box.server(mutual=True)
    other = box.server()
    cert, key = box.dir / 'cert.pem', box.dir / 'key.pem'
    rotate(cert, other.dir / 'server.pem')
    rotate(key, other.dir / 'server.key')
    run, ctl = configured(box, server.dsn, ca_certs=server.ca, client_cert=cert,
                          client_key=key)
    wait_for(lambda: 'does not answer' in run.stderr, 'it is refused')
    rotate(cert, server.dir / 'server.pem')
    rotate(key, server.dir / 'server.key')
    ctl.run('reload')
    wait_for(lambda: server.envelopes, 'a chunk')
    run.interrupt()


def test_files_that_cannot_be(box):
    """A missing file may exist at the next start: with status 1 systemd tries
    again, with status 2, which is for errors that a user must correct, it does
    not."""
    for option in ('--ca-certs', '--client-cert'):
        for path in (box.dir / 'none', box.dir):
            run = profd(box, 'http://key@localhost:1/1', option, path)
            check(run.wait() == 1 and f'{option}: {path}: ' in run.stderr,
                  run.stderr)
    run = profd(box, 'http://key@localhost:1/1', '--client-key', box.dir)
    check(run.wait() == 2 and '--client-key: client_key' in run.stderr,
          run.stderr)


def test_ipv6(box):
    with contextlib.closing(socket.socket(socket.AF_INET6)) as s:
        try:
            s.bind(('::1', 0))
        except OSError as e:
            raise Skip(f'no IPv6: {e}') from e
    check_arrives(box, box.server(tls=False, host='::1'))


def test_5xx_that_pass(box):
    spool = box.dir / 'spool'
    server = box.server(tls=False, script=[{'status': 503}, {'status': 502}])
    run = profd(box, server.dsn, '--spool', spool)
    wait_for(lambda: len(server.envelopes) >= 4 and not list(
        spool.glob('*.gz')), 'all arrive')
    run.interrupt()
    check(not run.stats['chunks']['discarded'], f'{run.stats["chunks"]}')
    got = [c['chunk_id'] for c in server.chunks]
    check(len(got) - len(set(got)) == 2, f'not twice again: {got}')


def encodings(server):
    """Returns the encodings of the requests with a chunk."""
    return {r['headers']['content-encoding'] for r in server.requests
            if any(i['type'] == 'profile_chunk' for i in r['items'])}


def test_compression(box):
    """The encoding of sent chunks and of spooled ones: gzip, or as configured.
    """
    spool = box.dir / 'spool'
    server = box.server(tls=False)
    server.down()
    run = profd(box, server.dsn, '--compression', 'zstd', '--spool', spool)
    wait_for(lambda: list(spool.glob('[!.]*.gz')), 'a chunk waits')
    kept = {p.name.split('-')[1] for p in spool.glob('[!.]*.gz')}
    for path in spool.glob('[!.]*.gz'):
        check(path.read_bytes()[:2] == b'\x1f\x8b', f'{path} is not gzip')
    server.up()
    wait_for(lambda: not list(spool.glob('*.gz')), 'nothing waits')
    before = len(server.envelopes)
    wait_for(lambda: len(server.envelopes) > before, 'another chunk')
    run.interrupt()
    server.check_requests()
    check(encodings(server) == {'zstd'}, f'{encodings(server)}')
    check(kept <= {c['chunk_id'] for c in server.chunks}, 'one is lost')
    other = box.server(tls=False)
    check_arrives(box, other)
    check(encodings(other) == {'gzip'}, f'{encodings(other)}')
    run = profd(box, server.dsn, '--compression', 'none')
    check(run.wait() == 2 and 'neither gzip nor zstd' in run.stderr,
          run.stderr)


def test_compression_is_configured(box):
    server = box.server(tls=False)
    config = box.dir / 'profd.conf'
    config.write_text('[sentry]\ncompression = zstd\n')
    check_arrives(box, server, '--config', config)
    check(encodings(server) == {'zstd'}, f'{encodings(server)}')


def listen():
    s = socket.socket()
    s.bind(('127.0.0.1', 0))
    s.listen(8)
    s.settimeout(harness.PATIENCE_S)
    return s


def test_a_byte_at_a_time(box):
    """The server answers without end; nothing waits for it."""
    answer = b'HTTP/1.1 200 OK\r\nX-Slow: ' + b'.' * 1000
    accepted, stop = threading.Event(), threading.Event()

    def drip(listening):
        connection, _ = listening.accept()
        with contextlib.closing(connection):
            connection.recv(1)
            accepted.set()
            for i in range(len(answer)):
                with contextlib.suppress(OSError):
                    connection.send(answer[i:i + 1])
                if stop.wait(1):
                    return
    with contextlib.closing(listen()) as listening:
        thread = threading.Thread(target=drip, args=(listening,))
        thread.start()
        try:
            port = listening.getsockname()[1]
            run = profd(box, f'http://{KEY}@127.0.0.1:{port}/42',
                        '--shutdown-timeout', '0.1', output=True)
            wait_for(accepted.is_set, 'a request')
            run.wait_chunks(3)
            run.interrupt()
        finally:
            stop.set()
            thread.join()
    chunks = run.stats['chunks']
    check(chunks['written'] == chunks['made'], f'{chunks}')


if __name__ == '__main__':
    harness.main(globals())
