#!/usr/bin/python3
"""The metrics for a monitoring system, and clients that send invalid requests.
"""

import os
import re
import shutil
import signal
import socket
import subprocess

import control
import harness
import openmetrics
import stranger
from harness import BUILD, ROOT, check, wait_for

PLAIN = 'text/plain; version=0.0.4; charset=utf-8'
OPEN = 'application/openmetrics-text; version=1.0.0; charset=utf-8'
# The header that Prometheus 2.42 sends.
ACCEPT = ('Accept: application/openmetrics-text;version=1.0.0,'
          'application/openmetrics-text;version=0.0.1;q=0.75,'
          'text/plain;version=0.0.4;q=0.5,*/*;q=0.1')


def start(box):
    """Starts a daemon with a target; returns also how to query it."""
    path = box.make_dir('run') / 'socket'
    profd = box.profd([box.napper()], '--socket', path,
                      '--chunk-seconds', '1')
    return profd.wait_attached(), control.Control(box, path)


class Served:
    """sentry-profd-metrics of one daemon."""

    def __init__(self, box, path, host='127.0.0.1'):
        self.host, self.port = host, harness.free_port()
        name = f'[{host}]' if ':' in host else host
        self.program = box.start([BUILD / 'sentry-profd-metrics', '--listen',
                                  f'{name}:{self.port}', '--socket', path])

        def listens():
            check(self.program.running(), self.program.report())
            try:
                self.connect().close()
            except ConnectionRefusedError:
                return False
            return True
        wait_for(listens, 'it listens')

    def connect(self):
        return socket.create_connection((self.host, self.port),
                                        harness.PATIENCE_S)

    def ask(self, *headers, line='GET /metrics HTTP/1.1'):
        """Returns the status, headers and body of the answer."""
        request = '\r\n'.join((line, 'Host: x', 'Connection: close', *headers,
                               '', ''))
        with self.connect() as s:
            s.sendall(request.encode('latin-1'))
            return self.answer(s)

    def answer(self, s):
        head, _, body = rest(s).partition(b'\r\n\r\n')
        first, *lines = head.decode().split('\r\n')
        headers = dict(line.split(': ', 1) for line in lines)
        return int(first.split()[1]), headers, body.decode()

    def scrape(self, *headers, kind=PLAIN):
        status, headers, body = self.ask(*headers)
        check(status == 200 and headers['Content-Type'] == kind and
              headers['Content-Length'] == str(len(body)),
              f'{status} {headers} {body}')
        return openmetrics.read(body, plain=kind == PLAIN)


def rest(s):
    """Returns all bytes up to the end."""
    data = b''
    while True:
        try:
            more = s.recv(65536)
        except ConnectionResetError:
            return data
        if not more:
            return data
        data += more


def test_figures(box):
    profd, ctl = start(box)
    profd.wait_chunks(2)
    profd.wait_looks(60)
    found = ctl.metrics()
    total = openmetrics.total
    check(total(found, 'processes', state='profiled') == 1, f'{found}')
    check(total(found, 'samples_total') > 0, f'{found}')
    check(total(found, 'samples_total') + total(found, 'missed_total') <=
          total(found, 'samples_expected_total') + 8, f'{found}')
    check(total(found, 'chunks_total', outcome='written') >= 1, f'{found}')
    # A series that begins with its first loss would not raise an alert.
    reasons = {dict(of)['reason']: n for (name, of), n in found.items()
               if name == 'sentry_profd_chunks_discarded_total'}
    check({'send_error', 'chunk_budget', 'insufficient_data', 'unknown_thread'} <= set(reasons)
          and not {'ok', 'unknown'} & set(reasons) and
          all(n == 0 for r, n in reasons.items() if r != 'insufficient_data'), f'{reasons}')
    check(total(found, 'stacks_total') > 0, f'{found}')
    check(total(found, 'pause_seconds_bucket', le='+Inf') > 0, f'{found}')
    for process in ('broker', 'capture', 'unwind', 'ship'):
        check(total(found, 'resident_bytes', process=process) > 1e5, process)
    # Counters never decrease, and the other format has the same values.
    text = ctl.run('metrics').stdout
    later = openmetrics.read(text, plain=True)
    check(set(later) >= set(found), f'{set(found) - set(later)}')
    down = [k for k in found if k[0].endswith(('_total', '_bucket'))
            and later[k] < found[k]]
    check(not down, f'{down}')
    # All metrics are described in the manual.
    page = (ROOT / 'docs/sentry-profd.8').read_text()
    names = {re.sub('_(bucket|info)$', '', n) for n, _ in found}
    missing = [n for n in names if n not in page]
    check(not missing, f'not in the manual page: {missing}')
    if shutil.which('promtool'):
        told = subprocess.run(['promtool', 'check', 'metrics'], input=text,
                              capture_output=True, text=True, check=False)
        check(told.returncode == 0 and not told.stdout + told.stderr, f'{told}')
    profd.interrupt()


def test_what_others_see(box):
    """The same as in the status: users see the metrics of their own processes,
    and no internal ones."""
    stranger.need_root()
    own = stranger.target(box, 'shares')
    path = box.make_dir('run') / 'socket'
    profd = box.profd([box.napper(), own], '--socket', path)
    profd.wait_attached()
    ctl = control.Control(box, path)
    total = openmetrics.total
    wait_for(lambda: total(ctl.metrics(uid=stranger.UID), 'samples_total') > 0,
             'samples of his own')
    theirs = ctl.metrics(uid=stranger.UID)
    alls = ctl.metrics()
    check(total(theirs, 'processes', state='profiled') == 2, f'{theirs}')
    check(total(theirs, 'samples_expected_total') <
          total(alls, 'samples_expected_total') * 0.9, f'{theirs}')
    check(('sentry_profd_spool_bytes', ()) in theirs, f'{theirs}')
    hidden = {name for name, _ in set(alls) - set(theirs)}
    check({'sentry_profd_' + name for name in (
        'restarts_total', 'cpu_seconds_total', 'resident_bytes',
        'files_refused_total', 'files_other_owner_total')} <= hidden, f'{hidden}')
    others = ctl.metrics(uid=stranger.UID + 1)
    check(total(others, 'samples_total') == 0 and
          total(others, 'samples_expected_total') == 0, f'{others}')
    profd.interrupt()


def test_restarts(box):
    """Restarts are counted for each process and reason."""
    profd, ctl = start(box)
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
        found = ctl.metrics()
        counted = {k: v for k, v in restarts(found).items() if v}
        check(counted == expected, f'{counted}, not {expected}')
    # A pause is not a restart.
    profd.signal(signal.SIGTSTP)
    harness.wait_for(lambda: harness.state(profd.pid) == 'T', 'it stops')
    profd.signal(signal.SIGCONT)
    profd.wait_attached()
    check(sum(restarts(ctl.metrics()).values()) == 4, 'a pause counts')
    profd.wait_chunks()
    profd.interrupt()


def restarts(found):
    return {(dict(of)['process'], dict(of)['reason']): value
            for (name, of), value in found.items()
            if name == 'sentry_profd_restarts_total'}


def test_limits_of_each_server(box):
    """A server is identified by its address, never by the key. Two keys of one
    server count as one."""
    limit = {'headers': {'X-Sentry-Rate-Limits': '3600:profile_chunk:key'}}
    limited, free = box.server(tls=False, script=[limit] * 50), \
        box.server(tls=False)
    key = re.search('//([^@]+)@', limited.dsn)[1]
    dsns = [limited.dsn, limited.dsn.replace(key, key[::-1]), free.dsn]
    directory = box.make_dir('etc')
    text = '[profiler]\nchunk_seconds = 1\n'
    for n, dsn in enumerate(dsns):
        target = box.napper()
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
    found = ctl.metrics()
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
    check(f'\n{servers[0]} accepts nothing for 3' in table and
          servers[1] not in table, table)
    shown = ctl.run('metrics').stdout + table + \
        ctl.run('status', '--json').stdout
    check(key not in shown and key[::-1] not in shown, 'a key is shown')
    if os.geteuid() == 0:
        daemon = ctl.status(uid=stranger.UID)['daemon']
        check(daemon['servers'] is None and daemon['config'] is None and
              daemon['rate_limited_s'] > 3000, f'{daemon}')
    profd.interrupt()


def test_both_formats_by_http(box):
    profd, ctl = start(box)
    profd.wait_chunks(1)
    served = Served(box, ctl.path)
    plain = served.scrape()
    check(served.scrape('Accept: text/plain, */*') and
          served.scrape('Accept: */*'), 'all that is not OpenMetrics')
    found = served.scrape(ACCEPT, kind=OPEN)
    check(set(found) >= set(plain), f'{set(plain) - set(found)}')
    # The size is that of the omitted body.
    status, headers, body = served.ask(line='HEAD /metrics HTTP/1.1')
    check(status == 200 and int(headers['Content-Length']) > 5000 and
          body == '' and headers['Content-Type'] == PLAIN, f'{headers} {body}')
    check(int(harness.proc_status(served.program.pid, 'Threads')) == 1,
          'one thread')
    profd.interrupt()
    served.program.signal(signal.SIGTERM)
    check(served.program.wait() == -signal.SIGTERM, served.program.report())


def test_ipv6(box):
    profd, ctl = start(box)
    try:
        served = Served(box, ctl.path, host='::1')
    except harness.Failure as e:
        if 'Cannot assign' in str(e) or 'not supported' in str(e):
            raise harness.Skip('no IPv6 here') from None
        raise
    served.scrape()
    profd.interrupt()


def test_wrong_places(box):
    """Faults in the program's options, and in the daemon's configuration,
    which names the place."""
    for where in ('0.0.0.0', '127.0.0.1', '127.0.0.1:0', '::1:80', '[::1]',
                  '127.0.0.1:65536', 'localhost:9000', '1.2.3:4', ':80',
                  '127.0.0.1:80x'):
        program = box.start([BUILD / 'sentry-profd-metrics', '--listen', where])
        check(program.wait() == 2 and f"'{where}'" in program.stderr,
              f'{where}: {program.report()}')
    for args in ([], ['--listen'], ['--listne', '127.0.0.1:1'], ['x']):
        program = box.start([BUILD / 'sentry-profd-metrics', *args])
        check(program.wait() == 2 and program.stderr, program.report())
    program = box.start([BUILD / 'sentry-profd-metrics', '--listen',
                         f'127.0.0.1:{box.server(tls=False).port}'])
    check(program.wait() == 1 and 'Address already in use' in program.stderr,
          program.report())
    path = box.make_dir('config') / 'profd.conf'
    path.write_text('[profiler]\nmetrics_listen = 127.0.0.1:80\n')
    path.chmod(0o600)
    profd = box.start([BUILD / 'sentry-profd', '--check-config', '--config', path])
    check(profd.wait() == 2 and
          f'{path}:2: metrics_listen is no key any more: '
          'sentry-profd-metrics --listen' in profd.stderr, profd.stderr)


if __name__ == '__main__':
    harness.main(globals())
