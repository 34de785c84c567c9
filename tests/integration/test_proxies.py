#!/usr/bin/python3
"""A server behind a proxy: what the proxy sees, and which host is connected to
without one.
"""

import contextlib
import pathlib
import socket
import threading

import harness
from account import Account, spooled_ids
from certificates import make_context
from envelopes import KEY
from harness import check, wait_for
from test_delivery_answers import sleepers


class Tunnel:
    """A proxy that supports CONNECT only."""

    def __init__(self, refuses=False, context=None):
        self.refuses = refuses
        self.context = context  # of TLS with the proxy itself
        self.seen = b''
        self.hosts = []
        self.listening = socket.create_server(('127.0.0.1', 0))
        self.port = self.listening.getsockname()[1]
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while True:
            try:
                client, _ = self.listening.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,),
                             daemon=True).start()

    def serve(self, client):
        with contextlib.closing(client), contextlib.suppress(OSError):
            if self.context:
                client = self.context.wrap_socket(client, server_side=True)
            head = b''
            while b'\r\n\r\n' not in head:
                head += client.recv(4096)
            self.seen += head
            method, host, _ = head.split(b' ', 2)
            self.hosts.append((method, host))
            if self.refuses:
                client.sendall(b'HTTP/1.1 403 Forbidden\r\n'
                               b'X-Sentry-Rate-Limits: 60:all:key\r\n'
                               b'Content-Length: 0\r\n\r\n')
                return
            # The address is a number, because there may be no /etc/hosts that
            # resolves localhost.
            port = int(host.decode().rsplit(':', 1)[1])
            with socket.create_connection(('127.0.0.1', port)) as server:
                client.sendall(b'HTTP/1.1 200 Connected\r\n\r\n')
                back = threading.Thread(target=self.pump,
                                        args=(server, client), daemon=True)
                back.start()
                self.pump(client, server)
                back.join()

    def pump(self, source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self.seen += data
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def close(self):
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        self.thread.join()


def run(box, server, *args, chunks=2, **env):
    spool = box.make_dir('run') / 'spool'
    env = (server.env if server.ca else harness.environment()) | env
    profd = box.profd(sleepers(box, 1), '--chunk-seconds', '1', '--dsn',
                      server.dsn, '--spool', spool, *args, env=env)
    wait_for(lambda: len(server.received) >= chunks, 'chunks')
    profd.interrupt()
    a = Account([profd], [server], spool)
    check(a.taken == a.made and not a.discarded, f'{vars(a)}')
    return profd


def test_a_tunnel(box):
    """The proxy sees the host, and neither the key nor a chunk."""
    server = box.server()
    with contextlib.closing(Tunnel()) as proxy:
        run(box, server, https_proxy=f'http://127.0.0.1:{proxy.port}',
            http_proxy='http://127.0.0.1:1')
    host = f'localhost:{server.port}'.encode()
    check(proxy.hosts == [(b'CONNECT', host)], f'{proxy.hosts}')
    check(KEY.encode() not in proxy.seen and b'Sentry' not in proxy.seen and
          b'envelope' not in proxy.seen, 'it saw what is inside')


def test_tls_with_a_proxy_that_has_an_authority_of_its_own(box):
    server, directory = box.server(), box.make_dir('proxy')
    context = make_context(directory, ['127.0.0.1'], 2)
    both = box.dir / 'both.pem'
    both.write_text(pathlib.Path(server.ca).read_text() + (directory / 'ca.pem').read_text())
    with contextlib.closing(Tunnel(context=context)) as proxy:
        url = f'https://127.0.0.1:{proxy.port}'
        run(box, server, '--ca-certs', both, https_proxy=url, SSL_CERT_FILE='')
        check(len(proxy.hosts) == 1, f'{proxy.hosts}')
        profd = box.profd(sleepers(box, 1), '--chunk-seconds', '1', '--dsn', server.dsn, '--spool',
                          box.dir / 'spool', '--shutdown-timeout', '0.1',
                          env=server.env | {'https_proxy': url})
        wait_for(lambda: 'does not answer: its proxy: ' in profd.stderr, 'it is told')
        profd.interrupt()


def test_of_the_configuration(box):
    server = box.server()
    config = box.dir / 'profd.conf'
    with contextlib.closing(Tunnel()) as proxy:
        config.write_text('[sentry]\nhttps_proxy = '
                          f'http://127.0.0.1:{proxy.port}\n')
        run(box, server, '--config', config,
            https_proxy='http://127.0.0.1:1')
    check(len(proxy.hosts) == 1, f'{proxy.hosts}')


def test_without_tls(box):
    """Without TLS the proxy gets the whole URL, as RFC 9112 requires."""
    server = box.server(tls=False)
    real = f'http://{KEY}@sentry.invalid/42'
    spool = box.dir / 'spool'
    profd = box.profd(sleepers(box, 1), '--chunk-seconds', '1', '--dsn', real,
                      '--spool', spool, env=harness.environment(
                          http_proxy=f'http://127.0.0.1:{server.port}'))
    wait_for(lambda: len(server.received) >= 2, 'chunks')
    profd.interrupt()
    server.check_requests()
    check({r['path'] for r in server.requests} ==
          {'http://sentry.invalid/api/42/envelope/'}, f'{server.requests}')
    check(profd.stats['chunks']['sent'] == len(server.envelopes) and
          not spooled_ids(spool), f'{profd.stats["chunks"]}')


def test_no_proxy(box):
    with contextlib.closing(Tunnel()) as proxy:
        url = f'http://127.0.0.1:{proxy.port}'
        nodes = ','.join(f'node-{n}.example.org' for n in range(200))
        check(len(nodes) > 4000, nodes)
        for names in 'localhost', '*', f'{nodes},localhost':
            run(box, box.server(), chunks=1, https_proxy=url, no_proxy=names)
        check(proxy.hosts == [], f'{proxy.hosts}')
        run(box, box.server(), chunks=1, https_proxy=url,
            no_proxy='example.org')
        check(len(proxy.hosts) == 1, f'{proxy.hosts}')


def test_a_proxy_that_refuses(box):
    """The proxy's status is not the server's answer, and its rate limits do
    not count."""
    server, spool = box.server(), box.dir / 'spool'
    with contextlib.closing(Tunnel(refuses=True)) as proxy:
        profd = box.profd(
            sleepers(box, 1), '--chunk-seconds', '1', '--dsn', server.dsn,
            '--spool', spool, '--shutdown-timeout', '0.1',
            env=server.env | {'https_proxy':
                              f'http://user:word@127.0.0.1:{proxy.port}'})
        wait_for(lambda: 'does not answer' in profd.stderr, 'it is told')
        profd.wait_chunks(2)
        profd.interrupt()
    a = Account([profd], [server], spool)
    check(a.waiting == a.made and not a.discarded and not server.requests,
          f'{vars(a)}')
    check('takes no profiles' not in profd.stderr and
          'word' not in profd.stderr, profd.stderr)


if __name__ == '__main__':
    harness.main(globals())
