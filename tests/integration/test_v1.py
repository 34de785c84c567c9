#!/usr/bin/python3
"""A V1 profile with its transaction, by the server's rules (docs/FORMATS.md).
"""

import json
import re

import harness
from account import spooled_ids
from harness import check, wait_for

DIGITS = re.compile(r'\d+')
HEX_32 = re.compile('[0-9a-f]{32}')
RFC_3339 = re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z')


def check_transaction(envelope, item, transaction, name):
    check(item.get('type') == 'transaction', f'{item}')
    check(transaction['type'] == 'transaction' and
          transaction['event_id'] == envelope.header['event_id'] and
          transaction['transaction'] == name and
          transaction['transaction_info']['source'] and
          transaction['start_timestamp'] <= transaction['timestamp'] and
          transaction['spans'] == [] and
          transaction['release'] and transaction['environment'],
          f'{transaction}')
    trace = transaction['contexts']['trace']
    check(HEX_32.fullmatch(trace['trace_id']) and
          re.fullmatch('[0-9a-f]{16}', trace['span_id']) and trace['op'],
          f'{trace}')
    check(DIGITS.fullmatch(trace['data']['thread.id']) and
          trace['data']['thread.name'], f'{trace}')


def check_samples(profile):
    """Checks the samples: at least two for each thread, in order, within 30 s,
    with valid indices."""
    last, counts = 0, {}
    for sample in profile['samples']:
        check(set(sample) == {'elapsed_since_start_ns', 'thread_id',
                              'stack_id'}, f'{sample}')
        check(DIGITS.fullmatch(sample['elapsed_since_start_ns']) and
              DIGITS.fullmatch(sample['thread_id']), f'{sample}')
        elapsed = int(sample['elapsed_since_start_ns'])
        check(last <= elapsed <= 30 * 10**9, f'{last} {elapsed}')
        last = elapsed
        frames = profile['stacks'][sample['stack_id']]
        check(all(0 <= f < len(profile['frames']) for f in frames),
              f'{sample}')
        counts[sample['thread_id']] = counts.get(sample['thread_id'], 0) + 1
    check(min(counts.values()) >= 2, f'{counts}')
    check(set(profile['thread_metadata']) == set(counts), 'threads')
    return counts


def check_profile(item, profile, transaction):
    check(item.get('type') == 'profile', f'{item}')
    check(profile['version'] == '1' and HEX_32.fullmatch(profile['event_id'])
          and profile['event_id'] != transaction['event_id'] and
          RFC_3339.fullmatch(profile['timestamp']) and
          profile['device']['architecture'] and profile['os']['name'] and
          profile['os']['version'], f'{profile}')
    for key in 'platform', 'release', 'environment':
        check(profile[key] == transaction[key], key)
    of = profile['transaction']
    trace = transaction['contexts']['trace']
    check(of == {'id': transaction['event_id'],
                 'name': transaction['transaction'],
                 'trace_id': trace['trace_id'],
                 'active_thread_id': trace['data']['thread.id']}, f'{of}')
    check(all(i['type'] == 'symbolic' for i in
              profile['debug_meta']['images']), 'images')
    check(of['active_thread_id'] in check_samples(profile['profile']),
          'the active thread has no samples')


def test_one_envelope(box):
    server = box.server()
    target = box.target('shares')
    # The profile lasts from attachment to the end: there is no second chunk,
    # whatever the destination.
    profd = box.profd([target], '--dsn', server.dsn, '--duration', '2',
                      '--transaction', 'nightly "run"', '--chunk-seconds', '1',
                      env=server.env, output=None)
    profd.finish()
    server.check_requests()
    envelope, = [e for e in server.all_envelopes() if len(e.items) >= 2]
    (first, transaction), (second, profile) = envelope.items[:2]
    transaction, profile = json.loads(transaction), json.loads(profile)
    check_transaction(envelope, first, transaction, 'nightly "run"')
    check_profile(second, profile, transaction)
    check(profile['transaction']['active_thread_id'] == str(target.pid),
          'not the main thread')
    names = [f.get('function') for f in profile['profile']['frames']]
    check('busy_seventy' in names, f'{names}')
    check(not server.envelopes, 'a chunk, too')


# A transaction is also a span.
CATEGORIES = 'transaction', 'span', 'profile'


def one_run(box, server, *args, status=0):
    """A run of one second, which is enough for two samples of a sleeping
    thread."""
    target = box.start(['sleep', 'infinity'])
    return box.profd([target], '--dsn', server.dsn, '--duration', '1',
                     '--transaction', 'nightly', *args, env=server.env,
                     output=None).finish(status)


def kept(box, server):
    """Returns a spool with a profile that was not answered."""
    spool = box.dir / 'spool'
    server.down()
    profd = one_run(box, server, '--spool', spool, '--shutdown-timeout', '0.1')
    check(profd.stats['chunks']['spooled'] == len(spooled_ids(spool)) == 1,
          f'{profd.stats["chunks"]}')
    server.up()
    return spool


def chunks_with(box, server, spool):
    return box.profd([box.start(['sleep', 'infinity'])], '--dsn', server.dsn,
                     '--chunk-seconds', '1', '--spool', spool, env=server.env,
                     output=None)


def profiles(server):
    return [e for e in server.all_envelopes()
            if [i['type'] for i, _ in e.items[:2]] == ['transaction', 'profile']]


def test_a_loss_is_told_of_as_what_it_is(box):
    server = box.server(status=500)
    profd = one_run(box, server, status=harness.ALL_LOST)
    check(profd.stats['chunks']['discarded'] == {'send_error': 1},
          f'{profd.stats["chunks"]}')
    check(server.losses == {c: {'send_error': 1} for c in CATEGORIES},
          f'{server.losses}')


def test_one_that_waits_arrives(box):
    server = box.server()
    spool = kept(box, server)
    profd = chunks_with(box, server, spool)
    wait_for(lambda: not spooled_ids(spool), 'it is sent')
    profd.interrupt()
    server.check_requests()
    check(len(profiles(server)) == 1 and server.losses == {},
          f'{server.losses}')


def test_one_that_waits_is_refused(box):
    server = box.server(status=400)
    spool = kept(box, server)
    profd = chunks_with(box, server, spool)
    wait_for(lambda: not spooled_ids(spool), 'it is refused')
    profd.interrupt(status=harness.ALL_LOST)
    check(len(profiles(server)) == 1, 'not once')
    chunks = profd.stats['chunks']['discarded']['send_error']
    losses = server.losses
    check({c: losses[c] for c in CATEGORIES} ==
          {c: {'send_error': 1} for c in CATEGORIES} and
          losses['profile_chunk'] == {'send_error': chunks}, f'{losses}')


def test_what_the_server_counts_is_not_told(box):
    server = box.server(script=[{'status': 429}])
    profd = one_run(box, server, status=harness.ALL_LOST)
    check(profd.stats['chunks']['discarded'] == {'ratelimit_backoff': 1} and
          server.losses == {}, f'{server.losses}')


def test_wrong_usage(box):
    target = box.target('shares')
    for args, word in ((['--duration', '31'], '30 seconds'),
                       ([], '30 seconds'),
                       (['--duration', '5', '--pid', 1], 'one --pid')):
        profd = box.profd([target], '--transaction', 'x', *args, output=None)
        check(profd.wait() == 2 and word in profd.stderr, profd.stderr)
    for name in '', 'x' * 201, 'a\nb', '\udcff':
        profd = box.profd([target], '--duration', '5', '--transaction', name,
                          output=None)
        check(profd.wait() == 2 and '--transaction' in profd.stderr,
              profd.stderr)


if __name__ == '__main__':
    harness.main(globals())
