#!/usr/bin/python3
"""sentry-profd-metrics: a daemon that is away, and clients that send invalid requests or wait."""

import contextlib
import re
import signal
import socket

import harness
from harness import check
from test_metrics import Served, rest, start


def test_a_daemon_that_is_away(box):
    """The daemon starts, ends, stops and continues: meanwhile the answer is
    503 with a line, and sentry-profd-metrics does not end."""
    path = box.make_dir('run') / 'socket'
    served = Served(box, path)

    def refused(why):
        status, _, body = served.ask()
        check(status == 503 and body.count('\n') == 1 and
              body.startswith(f'no answer from sentry-profd at {path}: ') and
              why in body, f'{status} {body}')
    refused('No such file')
    target = box.napper()
    for _ in range(2):
        profd = box.profd([target], '--socket', path).wait_attached()
        served.scrape()
        profd.signal(signal.SIGSTOP)
        refused('it is stuck')
        profd.signal(signal.SIGCONT)
        served.scrape()
        profd.interrupt()
        refused('No such file')
    check(served.program.running(), served.program.report())


def test_what_is_no_request(box):
    profd, ctl = start(box)
    served = Served(box, ctl.path)
    for line, status in (('GET / HTTP/1.1', 404),
                         ('GET /metricsx HTTP/1.1', 404),
                         ('POST /metrics HTTP/1.1', 405),
                         ('DELETE /metrics HTTP/1.1', 405)):
        got, headers, body = served.ask(line=line)
        check(got == status and body.endswith(' served\n') and
              (status == 404 or headers['Allow'] == 'GET, HEAD'),
              f'{line}: {got} {headers} {body}')
    status, _, _ = served.ask('X: ' + 'x' * 20000)
    check(status == 431, f'{status}')
    for nonsense in (b'\r\n' * 10, b'x' * 40000, b'\0' * 100 + b'\r\n\r\n',
                     b'GET /metrics HTTP/1.1\r\nContent-Length: x\r\n\r\n'):
        with served.connect() as s:
            # The request may be refused before its end.
            with contextlib.suppress(OSError):
                s.sendall(nonsense)
                s.shutdown(socket.SHUT_WR)
            said = rest(s)
            check(re.match(rb'$|HTTP/1\.[01] 4\d\d ', said),
                  f'{nonsense[:20]}: {said}')
    # A request in parts.
    with served.connect() as s:
        for byte in b'GET /metrics HTTP/1.0\r\n\r\n':
            s.sendall(bytes([byte]))
        check(served.answer(s)[0] == 200, 'a request in parts')
    profd.interrupt()


def test_clients_that_wait(box):
    """A client that sends nothing, or does not read, loses its connection.
    Others wait for a place until then, and the daemon waits for none of them.
    """
    profd, ctl = start(box)
    served = Served(box, ctl.path)
    silent = [served.connect() for _ in range(20)]
    deaf = [served.connect() for _ in range(3)]
    for s in deaf:
        s.sendall(b'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n' * 20)
    check(len(harness.descriptors(served.program.pid)) < 30, 'too many')
    ctl.metrics()
    served.scrape()
    for s in silent:
        check(s.recv(1) == b'', 'it was not ended')
    for s in silent + deaf:
        s.close()
    profd.interrupt()


if __name__ == '__main__':
    harness.main(globals())
