#!/usr/bin/python3
"""The requests that a server receives, and the losses that are reported."""

import contextlib
import socket

import account
import chunk_rules
import harness
from chunk_shape import kept_by_server
from envelopes import KEY
from harness import check, wait_for
from layout import Layout

harness.filters_kill()


def check_counts(profd, discarded, sent=0):
    """Checks that every chunk was sent, or is counted as discarded."""
    chunks = account.check_counts(profd)
    check(chunks['sent'] == sent, f'sent: {chunks}')
    check(set(chunks['discarded']) == set(discarded), f'reasons: {chunks}')


def test_file_and_server_get_the_same(box):
    server = box.server()
    target = box.napper()
    layout = Layout(target.pid)
    profd = box.profd([target], '--chunk-seconds', '1', '--dsn', server.dsn,
                      env=server.env)
    profd.wait_chunks(3)
    profd.interrupt()
    server.check_requests()
    written, received = profd.envelopes, server.envelopes
    check(profd.stats['chunks']['written'] == len(written), 'written')
    check_counts(profd, [], sent=len(written))
    check(len(received) == len(written) and
          all(ours.is_sent_as(theirs) for ours, theirs in zip(written, received)),
          'the server has other chunks than the directory')
    check(all(e.for_server != e.payload for e in written),
          'a file without its own members')
    # Other members are not removed either, if a file is sent later.
    check(all(kept_by_server(ours.chunk, theirs.chunk) == theirs.chunk
              for ours, theirs in zip(written, received)), 'what the server keeps of a file')
    for n, (ours, theirs) in enumerate(zip(written, received), 1):
        check(ours.where == f'{n:06}-{ours.chunk["chunk_id"]}.envelope',
              f'a file is called {ours.where}')
        for e, sent in ((ours, False), (theirs, True)):
            found = chunk_rules.problems(e, layout, sent=sent)
            check(found == [], f'{found[:5]}')
        check('sent_at' in theirs.header, 'sent_at')
        check(ours.header['event_id'] == theirs.header['event_id'],
              'the server and the directory have different events')
    check(len({e.header['event_id'] for e in received}) == len(received),
          'two envelopes of one event_id')
    # All requests use one connection, one after the other.
    check(len({r['connection'] for r in server.requests}) == 1,
          'the connection was not kept')


def test_sentry_dsn_stands_in(box):
    server = box.server(tls=False)
    target = box.napper()
    # If both are given, the option takes precedence.
    for env, args in ((server.dsn, []),
                      ('http://nobody@localhost:1/1', ['--dsn', server.dsn])):
        before = len(server.requests)
        profd = box.profile([target], *args, output=None,
                            env=harness.environment(SENTRY_DSN=env))
        made = profd.stats['chunks']['made']
        check_counts(profd, [], sent=made)
        check(len(server.requests) == before + made, 'not these requests')
    server.check_requests()
    check(list(profd.output.glob('*.envelope')) == [],
          'something was written without --output')


def test_a_limit(box):
    """Nothing is sent after the first answer. tests/unit/proto/check_rate_limit has all limits."""
    server = box.server(tls=False, script=[{'status': 429, 'headers': {
        'X-Sentry-Rate-Limits': '60:profile_chunk:organization'}}])
    profd = box.profd([box.napper()], '--chunk-seconds', '1', '--dsn',
                      server.dsn)
    wait_for(lambda: server.requests, 'the first chunk')
    profd.wait_chunks(2)
    profd.interrupt()
    server.check_requests()
    check(len(server.envelopes) == 1,
          f'{len(server.envelopes)} chunks in spite of the limit')
    check_counts(profd, ['ratelimit_backoff'])
    # The server knows of a 429, so the client does not report it. A report is
    # not a chunk.
    lost = profd.stats['chunks']['discarded']['ratelimit_backoff']
    check(server.reported == {'ratelimit_backoff': lost - 1}, f'{server.reported}')
    # The server's limits do not apply to files.
    check(len(profd.envelopes) == profd.stats['chunks']['made'], 'files')


def test_refused_by_the_server(box):
    server = box.server(tls=False, status=500)
    profd = box.profile([box.target('shares')], '--dsn', server.dsn, output=None,
                        status=harness.ALL_LOST)
    got = [c['chunk_id'] for c in server.chunks]
    check(len(got) == len(set(got)), 'a refused chunk was sent again')
    check(server.reported == {'send_error': len(got)}, f'{server.reported}')
    check_counts(profd, ['send_error'])
    check('500' in profd.stderr, f'the status is not told: {profd.stderr}')


def test_nobody_listens(box):
    # The socket is bound and does not listen, so no other process gets the
    # port.
    with contextlib.closing(socket.socket()) as s:
        s.bind(('127.0.0.1', 0))
        dsn = f'https://{KEY}@127.0.0.1:{s.getsockname()[1]}/42'
        profd = box.profile([box.target('shares')], '--dsn', dsn,
                            '--shutdown-timeout', 2)
    check_counts(profd, ['network_error'])
    check('does not answer' in profd.stderr and 'not sent' in profd.stderr, f'it is not told: {profd.stderr}')
    check(KEY not in profd.stderr + profd.stdout, 'the key is shown')
    check(len(profd.envelopes) == profd.stats['chunks']['written'] >= 1,
          'the file is there all the same')


def check_not_trusted(box, server, env, why='certificate'):
    profd = box.profd([box.napper()], '--dsn', server.dsn,
                      '--chunk-seconds', '1', '--shutdown-timeout', '0.1',
                      output=None, env=env)
    wait_for(lambda: 'does not answer' in profd.stderr, 'it is told')
    check(why in profd.stderr, f'not why: {profd.stderr}')
    profd.interrupt(status=harness.ALL_LOST)
    check_counts(profd, ['network_error'])
    check(all('tls_error' in r for r in server.requests),
          f'the server got {server.requests}')


def test_certificate_of_a_stranger(box):
    check_not_trusted(box, box.server(), box.server().env)


def test_certificate_that_is_over(box):
    server = box.server(expired=True)
    check_not_trusted(box, server, server.env, 'expired')


def test_the_key_is_nowhere(box):
    """The key is in no argument, no environment of another process, and no
    message."""
    server = box.server()
    profd = box.profd([box.napper()], '--chunk-seconds', '1', '--debug',
                      env=dict(server.env, SENTRY_DSN=server.dsn))
    wait_for(lambda: server.requests, 'a chunk arrives')
    helpers = [pid for pids in profd.helpers().values() for pid in pids]
    check(len(helpers) == 3, f'{helpers}')
    for pid in helpers:
        for name in ('cmdline', 'environ'):
            check(KEY not in harness.proc_text(pid, name),
                  f'the key is in {name} of {harness.exe_name(pid)}')
    profd.interrupt()
    check_counts(profd, [], sent=len(server.requests))
    check(KEY not in profd.stderr + profd.stdout, 'the key is shown')


if __name__ == '__main__':
    harness.main(globals())
