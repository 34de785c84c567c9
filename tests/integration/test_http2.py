#!/usr/bin/python3
"""A server that supports HTTP/2 only (RFC 9113), if libcurl supports it."""

import contextlib
import ctypes
import gzip
import socket
import ssl
import threading
import types

import harness
import http2
from account import spooled_ids
from envelopes import KEY, read_envelope
from harness import Skip, check, wait_for
from test_delivery_answers import sleepers


class Server:
    """Answers are dicts of headers; None: the stream is reset; then {}."""

    def __init__(self, tls, answers):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(tls.dir / 'server.pem',
                                     tls.dir / 'server.key')
        self.context.set_alpn_protocols(['h2'])
        self.answers = list(answers)
        self.listening = socket.create_server(('127.0.0.1', 0))
        self.port = self.listening.getsockname()[1]
        # (connection, stream, event id, is it a chunk that was answered?)
        self.received = []
        self.connections = 0
        self.fault = None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return
            self.connections += 1
            try:
                with self.context.wrap_socket(connection,
                                              server_side=True) as tls:
                    self.serve(tls)
            except (OSError, EOFError):
                pass
            except Exception as e:
                self.fault = repr(e)

    def serve(self, tls):
        check(tls.selected_alpn_protocol() == 'h2', 'no HTTP/2')
        connection = http2.Connection(types.SimpleNamespace(
            read=tls.makefile('rb').read, write=tls.sendall))
        connection.greet()
        while True:
            stream, body = connection.read_request()
            self.answer(connection, stream, gzip.decompress(body))

    def answer(self, connection, stream, envelope):
        header, items = read_envelope(envelope)
        answer = self.answers.pop(0) if self.answers else {}
        self.received.append((self.connections, stream, header['event_id'],
                              answer is not None and
                              items[0][0]['type'] == 'profile_chunk'))
        if answer is None:
            connection.send(http2.RST_STREAM, 0, stream,
                            http2.numbers(http2.INTERNAL_ERROR))
        else:
            connection.answer(stream, headers=answer.items())

    def has(self, n):
        return self.fault or len(self.received) >= n

    def close(self):
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        self.thread.join()


@contextlib.contextmanager
def profiled(box, answers=()):
    version = ctypes.CDLL('libcurl.so.4').curl_version
    version.restype = ctypes.c_char_p
    if b'nghttp2' not in version():
        raise Skip('libcurl has no HTTP/2')
    tls = box.server()
    server = Server(tls, answers)
    with contextlib.closing(server):
        profd = box.profd(sleepers(box, 1), '--chunk-seconds', '1', '--dsn',
                          f'https://{KEY}@localhost:{server.port}/42',
                          '--spool', box.dir / 'spool', '--debug',
                          env=tls.env)
        yield server, profd
        profd.interrupt()
    check(server.fault is None, server.fault)
    chunks = profd.stats['chunks']
    answered = sum(r[3] for r in server.received)
    check(chunks['sent'] + profd.stats['spool']['sent'] == answered and
          not spooled_ids(box.dir / 'spool'),
          f'{server.received}, {chunks}, {profd.stats["spool"]}')


def test_one_stream_after_the_other(box):
    with profiled(box) as (server, _):
        wait_for(lambda: server.has(3), 'chunks')
    check(server.connections == 1, f'{server.connections}')
    check([r[1] for r in server.received] ==
          [2 * n + 1 for n in range(len(server.received))],
          f'{server.received}')
    check(len({r[2] for r in server.received}) == len(server.received),
          'one came twice')


def test_a_limit(box):
    limit = {'x-sentry-rate-limits': '3600:profile_chunk:key'}
    with profiled(box, [limit]) as (server, profd):
        wait_for(lambda: 'takes no profiles' in profd.stderr or
                 server.has(2), 'the limit')
        check('takes no profiles for 3' in profd.stderr, profd.stderr)


def test_a_stream_that_is_reset(box):
    """A stream that is reset without an answer is sent again, once, and on another
    connection: this one may never answer again."""
    with profiled(box, [None]) as (server, profd):
        wait_for(lambda: server.fault or server.has(3) and
                 'answers again' in profd.stderr and
                 not spooled_ids(box.dir / 'spool'), 'it is sent')
    first = server.received[0][2]
    check([r[3] for r in server.received if r[2] == first] == [False, True],
          f'{server.received}')
    check([r[0] for r in server.received[:2]] == [1, 2], f'{server.received}')


if __name__ == '__main__':
    harness.main(globals())
