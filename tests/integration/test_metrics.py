#!/usr/bin/python3
"""What a monitoring system is told, and who asks in a way that is none."""

import os
import re
import signal
import socket

import control
import harness
import openmetrics
import stranger
from harness import ROOT, check

GET = b'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n'


def start(box, where):
    """A run that is profiled and serves its metrics."""
    path = box.make_dir('config') / 'profd.conf'
    path.write_text(f'[profiler]\nmetrics_listen = {where}\n')
    path.chmod(0o600)
    profd = box.profd([box.target('shares')], '--config', path,
                      '--chunk-seconds', '1')
    return profd.wait_attached()


def connect(where):
    if where.startswith('/'):
        s = socket.socket(socket.AF_UNIX)
        # With a time limit it would not wait for a place in the queue.
        s.connect(where)
        s.settimeout(harness.PATIENCE_S)
        return s
    return socket.create_connection(('127.0.0.1', int(where.split(':')[1])),
                                    harness.PATIENCE_S)


def rest(s):
    """All that comes until the end."""
    data = b''
    while True:
        try:
            more = s.recv(65536)
        except ConnectionResetError:
            return data
        if not more:
            return data
        data += more


def ask(where, request=GET):
    """The answer's status, headers and body."""
    with connect(where) as s:
        s.sendall(request)
        head, _, body = rest(s).partition(b'\r\n\r\n')
    first, *lines = head.decode().split('\r\n')
    headers = dict(line.split(': ', 1) for line in lines)
    check(headers.get('Content-Length') == str(len(body)), f'{headers}')
    return first, headers, body.decode()


def scrape(where):
    first, headers, body = ask(where)
    check(first == 'HTTP/1.1 200 OK', first)
    check(headers['Content-Type'].startswith(
        'application/openmetrics-text; version=1.0.0'), f'{headers}')
    return openmetrics.read(body)


def test_figures(box):
    where = str(box.make_dir('metrics') / 'socket')
    profd = start(box, where)
    profd.wait_chunks(2)
    profd.wait_looks(60)
    found = scrape(where)
    total = openmetrics.total
    check(total(found, 'processes', state='profiled') == 1, f'{found}')
    check(total(found, 'samples_total') > 0, f'{found}')
    check(total(found, 'samples_total') + total(found, 'missed_total') <=
          total(found, 'samples_expected_total') + 8, f'{found}')
    check(total(found, 'chunks_total', outcome='written') >= 1, f'{found}')
    check(total(found, 'stacks_total') > 0, f'{found}')
    check(total(found, 'pause_seconds_bucket', le='+Inf') > 0, f'{found}')
    for process in ('broker', 'capture', 'unwind', 'ship'):
        check(total(found, 'resident_bytes', process=process) > 1e5, process)
    # What counts up never goes down.
    later = scrape(where)
    down = [k for k in found if k[0].endswith(('_total', '_bucket'))
            and later[k] < found[k]]
    check(not down, f'{down}')
    # And all of it is described.
    page = (ROOT / 'docs/sentry-profd.8').read_text()
    names = {re.sub('_(bucket|info)$', '', n) for n, _ in found}
    missing = [n for n in names if n not in page]
    check(not missing, f'not in the manual page: {missing}')
    profd.interrupt()
    check(not box.dir.joinpath(where).exists(), 'the socket is left behind')


def test_restarts(box):
    """Of each process, by why it had to be started again."""
    where = str(box.make_dir('metrics') / 'socket')
    profd = start(box, where)
    expected = {}
    for kind, number, reason in (('capture', signal.SIGKILL, 'signal'),
                                 ('unwind', signal.SIGSEGV, 'signal'),
                                 ('ship', signal.SIGKILL, 'signal'),
                                 ('capture', signal.SIGSTOP, 'heartbeat')):
        pid, = profd.wait_attached().helpers()[kind]
        os.kill(pid, number)
        expected[kind, reason] = 1
        harness.wait_for(lambda k=kind, p=pid: profd.helpers()[k]
                         not in ([], [p]), f'another {kind}')
        found = scrape(where)
        counted = {k: v for k, v in restarts(found).items() if v}
        check(counted == expected, f'{counted}, not {expected}')
    # A pause is none.
    profd.signal(signal.SIGTSTP)
    harness.wait_for(lambda: harness.state(profd.pid) == 'T', 'it stops')
    profd.signal(signal.SIGCONT)
    profd.wait_attached()
    check(sum(restarts(scrape(where)).values()) == 4, 'a pause counts')
    profd.wait_chunks()
    profd.interrupt()


def restarts(found):
    return {(dict(of)['process'], dict(of)['reason']): value
            for (name, of), value in found.items()
            if name == 'sentry_profd_restarts_total'}


def test_limits_of_each_server(box):
    """By where it is, never by the key; two keys of one server are one."""
    limit = {'headers': {'X-Sentry-Rate-Limits': '3600:profile_chunk:key'}}
    limited, free = box.server(tls=False, script=[limit] * 50), \
        box.server(tls=False)
    key = re.search('//([^@]+)@', limited.dsn)[1]
    dsns = [limited.dsn, limited.dsn.replace(key, key[::-1]), free.dsn]
    directory = box.make_dir('etc')
    where = str(directory / 'metrics')
    text = f'[profiler]\nmetrics_listen = {where}\nchunk_seconds = 1\n'
    for n, dsn in enumerate(dsns):
        target = box.target('shares')
        pid_file = directory / f'{n}.pid'
        pid_file.write_text(f'{target.pid}\n')
        text += (f'[target "{n}"]\npid_file = {pid_file}\ndsn = {dsn}\n'
                 'autostart = yes\nmin_age_seconds = 0\n'
                 'profile_session_sample_rate = 1\n')
    path = directory / 'profd.conf'
    path.write_text(text)
    path.chmod(0o600)
    profd = box.profd([], '--config', path, '--socket', directory / 'socket',
                      output=None)
    ctl = control.Control(box, directory / 'socket')
    harness.wait_for(lambda: control.listens(ctl.path) or
                     not profd.running(), 'a socket')
    servers = [f'localhost:{s.port}/42' for s in (limited, free)]

    def states():
        return [t['state'] for t in sorted(ctl.status()['targets'],
                                           key=lambda t: t['name'])]
    harness.wait_for(lambda: states() == ['limited', 'limited', 'profiling'],
                     'two of three are limited')
    found = scrape(where)
    for server, pauses in zip(servers, (2, 0)):
        check(openmetrics.total(found, 'rate_limit_pauses_total',
                                server=server) == pauses,
              f'{found}')
        seconds = openmetrics.total(found, 'rate_limited_seconds', server=server)
        check((3000 < seconds <= 3600) if pauses else seconds == 0,
              f'{seconds} s of {server}')
    told = ctl.status()['daemon']['servers']
    check([s['server'] for s in told] == servers and
          3000 < told[0]['rate_limited_s'] <= 3600 and
          told[1]['rate_limited_s'] == 0, f'{told}')
    table = ctl.run('status').stdout
    check(f'\n{servers[0]} takes nothing for 3' in table and
          servers[1] not in table, table)
    shown = ask(where)[2] + table + ctl.run('status', '--json').stdout
    check(key not in shown and key[::-1] not in shown, 'a key is shown')
    if os.geteuid() == 0:
        daemon = ctl.status(uid=stranger.UID)['daemon']
        check(daemon['servers'] is None and daemon['config'] is None and
              daemon['rate_limited_s'] > 3000, f'{daemon}')
    profd.interrupt()


def test_port(box):
    port = harness.free_port()
    profd = start(box, f'127.0.0.1:{port}')
    scrape(f'127.0.0.1:{port}')
    profd.interrupt()


def test_a_directory_of_another_user(box):
    """A path of the configuration is root's to use, whoever owns the directory."""
    stranger.need_root()
    directory = box.make_dir('metrics')
    os.chown(directory, 65534, 65534)
    profd = start(box, f'{directory}/socket')
    scrape(f'{directory}/socket')
    profd.interrupt()


def test_what_is_no_request(box):
    where = str(box.make_dir('metrics') / 'socket')
    profd = start(box, where)
    for request, status in (
            (b'GET / HTTP/1.1\r\n\r\n', '404'),
            (b'GET /metricsx HTTP/1.1\r\n\r\n', '404'),
            (b'GET /metrics\r\n\r\n', '404'),
            (b'POST /metrics HTTP/1.1\r\n\r\n', '405'),
            (b'\r\n\r\n', '405'),
            (b'GET /metrics HTTP/1.1\r\nx: \0\r\n', '400'),
            (b'x' * 4096, '400')):
        first, _, _ = ask(where, request)
        check(first.split()[1] == status, f'{request[:40]}: {first}')
    # In parts.
    with connect(where) as s:
        for i in range(len(GET)):
            s.sendall(GET[i:i + 1])
        check(b'200 OK' in rest(s), 'a request in parts')
    profd.interrupt()


def test_clients_that_wait(box):
    """Who says nothing loses his place to others; who does not read keeps nobody
    waiting."""
    where = str(box.make_dir('metrics') / 'socket')
    profd = start(box, where)
    silent = [connect(where) for _ in range(20)]
    deaf = [connect(where) for _ in range(3)]
    for s in deaf:
        s.sendall(GET)
    scrape(where)
    ended = 0
    for s in silent[:12]:
        ended += s.recv(1) == b''
    check(ended == 12, f'{ended} of those that said nothing were ended')
    # The daemon is well: it samples on.
    profd.wait_chunks(1)
    scrape(where)
    for s in silent + deaf:
        s.close()
    profd.interrupt()


def test_wrong_places(box):
    for where in ('0.0.0.0:9000', '127.0.0.1', '127.0.0.1:0', '[::]:80',
                  '127.0.0.1:65536', 'localhost:9000', 'socket'):
        path = box.make_dir('config') / 'profd.conf'
        path.write_text(f'[profiler]\nmetrics_listen = {where}\n')
        path.chmod(0o600)
        profd = box.profd([box.target('shares')], '--config', path)
        check(profd.wait() == 2, f'{where}: {profd.stderr}')
        check(f'{path}:2: metrics_listen: neither' in profd.stderr,
              profd.stderr)


if __name__ == '__main__':
    harness.main(globals())
