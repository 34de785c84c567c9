#!/usr/bin/python3
"""sentry-profctl send: envelopes from files reach a server, and no answer of
the server loses one."""

import contextlib
import json
import shutil
import subprocess
import time

import harness
from envelopes import KEY as SERVER_KEY
from harness import BUILD, check
from test_proxies import Tunnel

KEY = '0123456789abcdef0123456789abcdef'


def command(server, *args):
    return [BUILD / 'sentry-profctl', 'send', *map(str, args), *(['--dsn', server.dsn]
                                                                  if server else [])]


def send(server, *args, status=0, env=None):
    """Returns standard output and standard error."""
    done = subprocess.run(command(server, *args), capture_output=True, text=True,
                          check=False, env=env or (server.env if server and server.ca
                                                   else harness.environment()))
    check(done.returncode == status, f'{args}: status {done.returncode}: '
                                     f'{done.stdout}{done.stderr}')
    return done.stdout, done.stderr


def made_chunk(n):
    return {'version': '2', 'profiler_id': 'a' * 32, 'chunk_id': f'{n:032x}',
            'platform': 'native', 'release': 'r@1', 'environment': 'test',
            'client_sdk': {'name': 'x', 'version': '1'},
            'debug_meta': {'images': []},
            'profile': {'frames': [{'function': f'f{n}', 'instruction_addr': '0x1'}],
                        'stacks': [[0]],
                        'samples': [{'timestamp': t, 'thread_id': '1', 'stack_id': 0}
                                    for t in (1790000000, 1790000001)],
                        'thread_metadata': {'1': {'name': 'main'}}}}


def write(box, numbers):
    """Writes a directory with an envelope for each number; returns it and the
    payloads."""
    directory = box.make_dir('in')
    payloads = []
    for n in numbers:
        data = json.dumps(made_chunk(n)).encode()
        payloads.append(data)
        (directory / f'{n:06}.envelope').write_bytes(
            b'{"event_id":"%032x"}\n{"type":"profile_chunk","platform":"native",'
            b'"length":%d}\n%s\n' % (n, len(data), data))
    return directory, payloads


def taken(server):
    """Returns the payloads of the requests that were answered by 200."""
    done = [r['n'] for r in server.requests if r.get('status') == 200]
    return [e.payload for r, e in zip(server.requests, server.envelopes)
            if r['n'] in done]


def test_all_arrive(box):
    """Envelopes that the daemon wrote to files arrive as if it had sent them.
    """
    profd = box.profile([box.target('shares')], '--chunk-seconds', '1', work=2.5)
    written = [e.payload for e in profd.envelopes]
    check(len(written) > 1, f'{len(written)} chunks')
    before = {p: p.read_bytes() for p in profd.output.iterdir()}
    server = box.server(for_files=True)
    out, stderr = send(server, profd.output)
    check(taken(server) == written, 'other payloads')
    check(all(r['problems'] == [] for r in server.requests), f'{server.requests}')
    check(out == f'{len(written)} chunks sent\n' and stderr == '', out + stderr)
    check(before == {p: p.read_bytes() for p in profd.output.iterdir()},
          'the files are others')
    # With the DSN of the environment; a file by its name; a payload without an
    # envelope.
    path = box.make_dir('bare') / 'x.json'
    path.write_bytes(written[0])
    send(None, path, env={**server.env, 'SENTRY_DSN': server.dsn})
    check(taken(server)[-1] == written[0], 'a bare payload')


def test_what_is_no_envelope(box):
    """Each file that is no envelope is an error, and the others are sent."""
    server = box.server(for_files=True)
    directory, payloads = write(box, (1, 5))
    (directory / '000002.envelope').write_bytes(b'hello\n')
    (directory / '000003.envelope').write_bytes(
        b'{"event_id":"0"}\n{"type":"transaction","length":2}\n{}\n')
    other = json.dumps({**made_chunk(4), 'chunk_id': 'short'}).encode()
    (directory / '000004.envelope').write_bytes(other)
    missing = directory / 'missing'
    out, stderr = send(server, missing, directory, status=1)
    check(taken(server) == payloads, f'{len(taken(server))} were sent')
    check('2 chunks sent, 3 invalid\n' == out, out)
    for words in (f'{missing}: No such file', '000002.envelope: is not JSON',
                  '000003.envelope: has no profile chunk',
                  '000004.envelope: a chunk is not sent: its chunk_id is not 32'):
        check(words in stderr, f'{words}: {stderr}')
    out, stderr = send(server, box.make_dir('empty'), status=1)
    check('no profile chunk in these files' in stderr, stderr)


def test_a_limit_is_waited_for(box):
    """A 429 loses no envelope, and no request comes before Retry-After is
    over."""
    server = box.server(for_files=True, script=[
        {}, {'status': 429, 'headers': {'Retry-After': '2'}}, {},
        # A limit in the answer to an accepted chunk is waited for, too.
        {'headers': {'X-Sentry-Rate-Limits': '1:profile_chunk:key'}}])
    directory, payloads = write(box, range(1, 6))
    before = time.monotonic()
    out, stderr = send(server, directory)
    check(time.monotonic() - before >= 2, 'it was not waited for')
    check(taken(server) == payloads, f'{len(taken(server))} were sent')
    check(len(server.requests) == 6, f'{len(server.requests)} requests')
    check(stderr.count('the server takes no profiles for') == 2, stderr)
    check(out == '5 chunks sent\n', out)
    check(all(len(e.items) == 1 for e in server.envelopes), 'a loss is reported')


def test_a_server_that_does_not_answer(box):
    server = box.server(for_files=True)
    directory, payloads = write(box, range(1, 4))
    before = {p: p.read_bytes() for p in directory.iterdir()}
    server.down()
    out, stderr = send(server, directory, '--timeout', '1', status=1)
    check(out == '0 chunks sent, 3 not sent\n', out)
    check('the server does not answer: ' in stderr and
          '000001.envelope: not sent: the server has not answered within 1 s' in stderr,
          stderr)
    check(stderr.count(': not sent: ') == 1, f'said for each: {stderr}')
    check(before == {p: p.read_bytes() for p in directory.iterdir()},
          'the files are others')
    # A server that comes back is tried again.
    server.up()
    server.tell(script=[{'do': 'close'}, {'status': 503}, {}])
    check(send(server, directory)[0] == '3 chunks sent\n', 'it is up')
    check(taken(server) == payloads, f'{len(taken(server))} were sent')


def test_refused(box):
    server = box.server(for_files=True, script=[{}, {'status': 400}, {}])
    directory, payloads = write(box, range(1, 4))
    out, stderr = send(server, directory, status=1)
    check(out == '2 chunks sent, 1 refused by the server\n', out)
    check('000002.envelope: the server has refused chunk' in stderr and
          'status 400' in stderr, stderr)
    check(taken(server) == [payloads[0], payloads[2]], 'others were taken')


def test_a_refused_dsn(box):
    """One request, and one line: the other chunks would be refused, too."""
    server = box.server(for_files=True, script=[
        {'status': 403, 'body': '{"detail": "no such key"}'}])
    out, stderr = send(server, write(box, range(1, 4))[0], status=1)
    check(out == '0 chunks sent, 1 refused by the server, 2 not sent\n', out)
    check(stderr.count('the server refuses the DSN with status 403, no such key') == 1 and
          len(server.requests) == 1, stderr)


def test_a_proxy(box):
    """The proxy sees the host, and neither the key nor a chunk."""
    server = box.server(for_files=True)
    directory, payloads = write(box, range(1, 4))
    with contextlib.closing(Tunnel()) as proxy:
        out, _ = send(server, directory, env=server.env | {
            'https_proxy': f'http://127.0.0.1:{proxy.port}',
            'http_proxy': 'http://127.0.0.1:1'})
    check(out == '3 chunks sent\n' and taken(server) == payloads, out)
    check(set(proxy.hosts) == {(b'CONNECT', f'localhost:{server.port}'.encode())},
          f'{proxy.hosts}')
    check(SERVER_KEY.encode() not in proxy.seen and b'envelope' not in proxy.seen,
          'it saw what is inside')
    # The proxy's own answer is not the server's.
    with contextlib.closing(Tunnel(refuses=True)) as proxy:
        out, stderr = send(server, directory, '--timeout', '1', status=1,
                           env=server.env | {'https_proxy':
                                             f'http://user:word@127.0.0.1:{proxy.port}'})
    check(out == '0 chunks sent, 3 not sent\n' and 'word' not in stderr, stderr)
    check('takes no profiles' not in stderr and len(taken(server)) == 3, stderr)


def test_authorities(box):
    """The files are opened with the caller's rights: ship's user may not enter
    the directory."""
    server = box.server(for_files=True)
    directory, payloads = write(box, [1])
    ca = box.dir / 'private/ca.pem'
    ca.parent.mkdir(mode=0o700)
    shutil.copy(server.ca, ca)
    ca.chmod(0o600)
    env = harness.environment()
    check(send(server, directory, '--timeout', '1', env=env, status=1)[0] ==
          '0 chunks sent, 1 not sent\n', 'a server that nobody vouches for')
    check(send(server, directory, '--ca-certs', ca, env=env) ==
          ('1 chunk sent\n', ''), 'an option')
    # The option takes precedence, and a wrong path in the variable is only a
    # warning.
    nowhere = harness.environment(SSL_CERT_FILE='/does/not/exist')
    check(send(server, directory, '--ca-certs', ca, env=nowhere) ==
          ('1 chunk sent\n', ''), 'the variable counted')
    plain = box.server(for_files=True, tls=False)
    stderr = send(plain, directory, env=nowhere)[1]
    check('SSL_CERT_FILE: /does/not/exist: No such file' in stderr, stderr)
    for found, wanted in ((server, payloads * 2), (plain, payloads)):
        check([e.payload for e in found.envelopes] == wanted, 'others were taken')
    ca.write_text('nothing')
    for path, why in ((ca, 'holds no certificate'), (box.dir, 'Is a directory'),
                      (box.dir / 'none', 'No such file')):
        stderr = send(server, directory, '--ca-certs', path, env=env, status=2)[1]
        check(f'--ca-certs: {path}: {why}' in stderr, stderr)


def test_usage(box):
    directory, _ = write(box, [1])
    dsn = f'http://{KEY}@127.0.0.1:{harness.free_port()}/1'
    for args, words in (
            (['--dsn', dsn], 'no input'), ([directory], 'no DSN'),
            ([directory, '--dsn', 'nonsense'], 'send: --dsn: '),
            ([directory, '--dsn', dsn, '--timeout', '0'], 'not a number of seconds'),
            ([directory, '-d', dsn], 'send: -d: not known'),
            ([directory, '--dns', dsn], 'did you mean --dsn')):
        check(words in send(None, *args, status=2)[1], f'{args}')


if __name__ == '__main__':
    harness.main(globals())
