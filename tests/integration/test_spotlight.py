#!/usr/bin/python3
"""Spotlight: the envelopes that it gets; it delays nothing else."""

import json

import harness
from harness import check, wait_for

DEFAULT = 'http://localhost:8969/stream'


def transaction_of(envelope):
    found = [json.loads(p) for item, p in envelope.items
             if item['type'] == 'transaction']
    check(len(found) == 1, f'{len(found)} transactions')
    return found[0]


def check_anchor(envelope, pid):
    """Checks that the transaction refers to the chunk in the same envelope."""
    anchor, chunk = transaction_of(envelope), envelope.chunk
    contexts = anchor['contexts']
    times = [s['timestamp'] for s in chunk['profile']['samples']]
    check(anchor['transaction'] == f'shares {pid}', anchor['transaction'])
    check(contexts['profile'] == {'profiler_id': chunk['profiler_id']},
          f'{contexts}')
    check(contexts['trace']['trace_id'] == chunk['profiler_id'] and
          contexts['trace']['op'] == 'profile', f'{contexts}')
    # The target's thread that works.
    check(contexts['trace']['data']['thread.id'] == str(pid), f'{contexts}')
    check(anchor['start_timestamp'] == min(times) and
          anchor['timestamp'] == max(times), 'its time is another one')
    check(envelope.header['event_id'] == anchor['event_id'] ==
          chunk['chunk_id'], 'its id')


def says_more(envelope):
    return (b'"state":"waiting"' in envelope.payload and
            b'"code_id"' in envelope.payload)


def test_it_is_the_only_destination(box):
    """Without a DSN no directory is made, and Spotlight gets all chunks."""
    spotlight = box.server(tls=False, spotlight=True)
    target = box.target('shares')
    cwd = box.make_dir('cwd')
    # Spotlight answers zstd by 500, whatever encoding Sentry's server gets.
    profd = box.profile([target], f'--spotlight={spotlight.url}',
                        '--chunk-seconds', '1', '--compression', 'zstd',
                        work=1.5, output=None, cwd=cwd, table=True)
    spotlight.check_requests()
    check(list(cwd.iterdir()) == [], 'files were written')
    sent = spotlight.envelopes
    check(len(sent) > 1, f'{len(sent)} envelopes')
    for envelope in sent:
        check_anchor(envelope, target.pid)
        check(says_more(envelope), 'it is the payload for a server')
    check(len({transaction_of(e)['contexts']['trace']['span_id']
               for e in sent}) == len(sent), 'a span twice')
    check(profd.stats['spotlight'] == {'sent': len(sent), 'discarded': {}},
          f'{profd.stats["spotlight"]}')
    check(f'{len(sent)} chunks sent to Spotlight' in profd.stdout,
          profd.stdout)


def test_beside_a_server_and_files(box):
    """Each destination gets the same chunks, in its own form."""
    server = box.server()
    spotlight = box.server(tls=False, spotlight=True)
    profd = box.profile([box.target('shares')], '--dsn', server.dsn,
                        f'--spotlight={spotlight.url}', '--chunk-seconds', '1',
                        work=1.5, env=server.env)
    server.check_requests()
    spotlight.check_requests()
    files = [e.payload for e in profd.envelopes]
    check(len(files) > 1, f'{len(files)} files')
    check([e.payload for e in spotlight.envelopes] == files,
          'Spotlight has other payloads')
    check(all(ours.is_sent_as(theirs)
              for ours, theirs in zip(profd.envelopes, server.envelopes, strict=True)),
          'the server has others')
    check(all(item['type'] != 'transaction'
              for e in profd.envelopes + server.envelopes
              for item, _ in e.items), 'the transaction is not for them')


def test_down_and_up_in_the_middle(box):
    """The server gets each chunk, and only Spotlight loses some."""
    server = box.server()
    spotlight = box.server(tls=False, spotlight=True, port=harness.free_port())
    profd = box.profd([box.target('shares')], '--dsn', server.dsn,
                      f'--spotlight={spotlight.url}', '--chunk-seconds', '1',
                      '--shutdown-timeout', '1', output=None,
                      env=server.env).wait_attached()

    def wait_arrived(of, n):
        wait_for(lambda: len(of.envelopes) >= n, f'{n} chunks')

    # When the second one has come, the first one was answered.
    wait_arrived(spotlight, 2)
    spotlight.down()
    wait_arrived(server, len(server.envelopes) + 4)
    spotlight.up()
    wait_arrived(spotlight, len(spotlight.envelopes) + 2)
    # Spotlight does not answer, so the chunk in flight is given up.
    spotlight.tell(do='mute')
    wait_arrived(server, len(server.envelopes) + 2)
    profd.interrupt()
    stats = profd.stats
    made = stats['chunks']['made']
    server.check_requests()
    spotlight.check_requests()
    check(len(server.envelopes) == stats['chunks']['sent'] == made,
          f'{len(server.envelopes)} of {made} arrived')
    check(stats['chunks']['discarded'] == {} and server.losses == {},
          f'{stats["chunks"]}, {server.losses}')
    lost = stats['spotlight']['discarded']
    check(lost.get('network_error', 0) > 0 and
          sum(lost.values()) + stats['spotlight']['sent'] == made,
          f'{stats["spotlight"]} of {made}')
    said = [line for line in profd.stderr.splitlines()
            if f'Spotlight at localhost:{spotlight.port}' in line]
    # The second line is about the chunk in flight at the end.
    check(len([s for s in said if 'does not answer' in s]) in (1, 2) and
          len([s for s in said if 'answers again' in s]) == 1,
          f'{profd.stderr}')


def test_a_status_is_a_loss(box):
    """No answer of Spotlight sets a rate limit."""
    limit = {'status': 429, 'headers': {
        'Retry-After': '3600', 'X-Sentry-Rate-Limits': '3600::org'}}
    spotlight = box.server(tls=False, spotlight=True,
                           script=[limit, {'status': 503}])
    profd = box.profd([box.napper()], f'--spotlight={spotlight.url}',
                      '--chunk-seconds', '1', '--retry-5xx',
                      output=None).wait_attached()
    wait_for(lambda: len(spotlight.envelopes) >= 4, 'four chunks')
    profd.interrupt()
    spotlight.check_requests()
    ids = [c['chunk_id'] for c in spotlight.chunks]
    check(len(set(ids)) == len(ids), 'one was sent again')
    check(profd.stats['spotlight'] ==
          {'sent': len(ids) - 2, 'discarded': {'send_error': 2}},
          f'{profd.stats["spotlight"]}')


def test_https_and_no_proxy(box):
    spotlight = box.server(spotlight=True)
    proxy = f'http://localhost:{harness.free_port()}'
    box.profile([box.target('shares')], f'--spotlight={spotlight.url}',
                output=None, env=harness.environment(
                    SSL_CERT_FILE=spotlight.ca, https_proxy=proxy,
                    http_proxy=proxy))
    spotlight.check_requests()
    check(len(spotlight.envelopes) == 1, 'the chunk')


def test_a_v1_profile(box):
    spotlight = box.server(tls=False, spotlight=True)
    box.profd([box.napper()], f'--spotlight={spotlight.url}',
              '--transaction', 'checkout', '--duration', '1',
              output=None).finish()
    spotlight.check_requests()
    request, = spotlight.received
    check([i['type'] for i in request['items']] == ['transaction', 'profile'],
          f'{request["items"]}')


# The option, the variable, and the result; None: off.
TABLE = [
    (None, None, None),
    (None, '', None),
    (None, ' ', None),
    (None, ' True ', DEFAULT),
    (None, 't', DEFAULT),
    (None, 'Y', DEFAULT),
    (None, 'yes', DEFAULT),
    (None, 'ON', DEFAULT),
    (None, '1', DEFAULT),
    (None, 'false', None),
    (None, 'F', None),
    (None, 'n', None),
    (None, 'no', None),
    (None, ' off', None),
    (None, '0', None),
    (None, ' http://[::1]:9/x ', 'http://[::1]:9/x'),
    ('', None, DEFAULT),
    ('', 'http://a:9/x', 'http://a:9/x'),
    ('', 'off', DEFAULT),
    ('=yes', 'https://a/x', 'https://a/x'),
    ('=no', 'http://a:9/x', None),
    ('=http://b/y', 'http://a:9/x', 'http://b/y'),
    ('=http://b/y', 'no', 'http://b/y'),
]


def holds(box, *args, **variables):
    """Returns the URL that --check-config prints, or None."""
    config = box.dir / 'sentry-profd.conf'
    config.touch(mode=0o600)
    program = box.start([harness.BUILD / 'sentry-profd', '--config', config,
                         '--check-config', *args],
                        env=harness.environment(**variables))
    check(program.wait() == 0, program.stderr)
    found = [line.partition(' = ')[2] for line in program.stdout.splitlines()
             if line.startswith('spotlight = ')]
    return found[0] if found else None


def test_option_and_variable(box):
    for option, variable, url in TABLE:
        args = [] if option is None else ['--spotlight' + option]
        variables = {} if variable is None else {'SENTRY_SPOTLIGHT': variable}
        found = holds(box, *args, **variables)
        check(found == url, f'{option}, {variable}: {found}, not {url}')


def test_the_key_of_the_configuration(box):
    config = box.dir / 'sentry-profd.conf'
    for value, url in (('yes', DEFAULT), ('no', None),
                       ('http://b:1/y', 'http://b:1/y')):
        config.write_text(f'[sentry]\nspotlight = {value}\n')
        found = holds(box)
        check(found == url, f'{value}: {found}, not {url}')


def test_what_is_no_url(box):
    target = box.napper()
    for text in ('sure', 'ftp://localhost/stream', 'http://', 'http:///stream',
                 'http://user@localhost/stream', 'http://localhost:0/stream',
                 'http://localhost/stream?x=1', 'http://localhost/../x',
                 'http://local host/', ''):
        for args, variables in (([f'--spotlight={text}'], {}),
                                ([], {'SENTRY_SPOTLIGHT': text})):
            if not args and not text:
                continue
            profd = box.profd([target], *args, output=None,
                              env=harness.environment(**variables))
            check(profd.wait() == 2, f'{text}: exit status')
            check('spotlight' in profd.stderr.lower() and
                  'neither yes, no nor a URL like ' + DEFAULT in profd.stderr,
                  f'{text}: {profd.stderr}')


def test_a_targets_variable_is_its_own(box):
    """A target's own environment does not send its chunks anywhere."""
    spotlight = box.server(tls=False, spotlight=True)
    target = box.target('shares', env=harness.environment(
        SENTRY_SPOTLIGHT=spotlight.url))
    profd = box.profile([target])
    check('spotlight' not in profd.stats and spotlight.requests == [],
          'it was taken')


def test_every_session_is_sampled_for_it(box):
    """In a section without a DSN every session is sampled, whatever its rate;
    with a DSN the rate applies."""
    spotlight = box.server(tls=False, spotlight=True)
    server = box.server()
    target = box.target('shares')
    config = box.dir / 'sentry-profd.conf'
    for dsn, sampled in (('', True), (server.dsn, False)):
        config.write_text(
            f'[sentry]\nspotlight = {spotlight.url}\n'
            f'[profiler]\nsocket = {box.dir}/socket\n'
            '[target "a"]\ncomm = shares\nautostart = yes\n'
            'min_age_seconds = 0\n' + (f'dsn = {dsn}\n' if dsn else ''))
        config.chmod(0o600)
        profd = box.profd([], '--config', config, output=None, env=server.env)
        if sampled:
            wait_for(lambda: harness.tracer(target.pid) != 0, 'the target')
            profd.wait_looks()
        else:
            wait_for(lambda: 'profile_session_sample_rate excludes it' in profd.stderr or
                     'none of its processes is profiled' in profd.stderr,
                     'the decision')
            check(harness.tracer(target.pid) == 0, 'it is profiled')
        profd.interrupt()
        check(not sampled or spotlight.envelopes, 'nothing has arrived')
    check('the default is 0' in profd.stderr, profd.stderr)
    check(server.envelopes == [], 'the server has some')


if __name__ == '__main__':
    harness.main(globals())
