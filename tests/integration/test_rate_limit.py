#!/usr/bin/python3
"""While the server accepts no profiles, nothing is sampled."""

import os
import signal
import time
from email.utils import formatdate

import control
import harness
import openmetrics
from account import check_counts, spooled_ids
from envelopes import KEY
from harness import check, threads, tracer, wait_for

# A limit that lasts longer than any test, and the shortest possible one.
LONG = {'headers': {'X-Sentry-Rate-Limits': '3600:profile_chunk:key'}}
SHORT = {'headers': {'X-Sentry-Rate-Limits': '1:profile_chunk:key'}}


def start(box, script, *args, target=None, **options):
    server = box.server(script=script)
    target = target or box.napper()
    profd = box.profd([target], '--chunk-seconds', '1', '--dsn', server.dsn,
                      *args, env=server.env, **options)
    return server, target, profd


def has_ticks(profd):
    """Returns true if the timer of ticks runs. Without it, capture wakes for
    its heartbeat only."""
    return any('timerfd' in path for pid in profd.helpers()['capture']
               for path in harness.descriptors(pid).values())


def let_go(target):
    return all(tracer(tid) == 0 for tid in threads(target.pid))


def wait_let_go(profd, target):
    """Waits until no thread is traced."""
    wait_for(lambda: 'nothing is sampled' in profd.stderr, 'it is said')
    wait_for(lambda: let_go(target), 'it is let go')
    wait_for(lambda: not has_ticks(profd), 'there are no ticks')


def test_targets_are_let_go(box):
    server, target, profd = start(box, [LONG], '--debug', output=None)
    wait_let_go(profd, target)
    # Profiling does not begin again for another reason.
    profd.signal(signal.SIGTSTP)
    wait_for(lambda: 'SIGTSTP: detaching from all processes' in profd.stderr, 'it stops')
    profd.signal(signal.SIGCONT)
    ship, = profd.helpers()['ship']
    os.kill(ship, signal.SIGKILL)
    wait_for(lambda: profd.helpers()['ship'] not in ([], [ship]),
             'another ship')
    capture = wait_for(lambda: profd.helpers()['capture'], 'capture')[0]
    os.kill(capture, signal.SIGKILL)
    wait_for(lambda: profd.helpers()['capture'] not in ([], [capture]),
             'another capture')
    check(let_go(target), 'it is traced again')
    profd.interrupt()
    check(len(server.envelopes) == 1, 'something was sent')
    check(set(check_counts(profd)['discarded']) <= {'ratelimit_backoff'},
          f'{profd.stats["chunks"]}')
    limit = profd.stats['rate_limit']
    check(limit['pauses'] == 1 and limit['paused_s'] > 0, f'{limit}')
    check(profd.stats['missed'].get('no_capture', 0) == 0,
          f'ticks are missed: {profd.stats["missed"]}')
    check(profd.stderr.count('nothing is sampled') == 1,
          f'said more than once: {profd.stderr}')


def has_chunk(request):
    return any(i['type'] == 'profile_chunk' for i in request['items'])


def test_a_server_that_refuses_the_dsn(box):
    """Nothing is sampled, the chunks wait, and the server gets probes until it
    accepts one."""
    # The log and the status do not show the key, which the server knows.
    denied = {'status': 403, 'body': f'{{"detail": "no such key{KEY}"}}'}
    said = f'no such key{"*" * len(KEY)}'
    run, spool = box.make_dir('run') / 'profd.sock', box.make_dir('kept') / 'spool'
    server, target, profd = start(box, [denied] * 999, '--socket', run, '--spool', spool,
                                  output=None)
    wait_let_go(profd, target)
    ctl = control.Control(box, run)
    told, = ctl.status()['daemon']['servers']
    check(told['refusal'] == {'status': 403, 'detail': said}, f'{told}')
    check(f'refuses the DSN (403, {said})' in ctl.run('status').stdout, 'the table')
    # Another ship knows of the refusal.
    wait_for(lambda: len(server.requests) >= 3, 'probes')
    ship, = profd.helpers()['ship']
    os.kill(ship, signal.SIGKILL)
    n = len(server.requests)
    wait_for(lambda: len(server.requests) >= n + 3, 'its probes')
    check([has_chunk(r) for r in server.requests] == [True] + [False] * (
        len(server.requests) - 1), f'{server.requests}')
    check(spooled_ids(spool) and let_go(target), 'the chunks wait')
    check(profd.stderr.count(f'refuses the DSN with status 403, {said}: nothing') == 1 and
          profd.stderr.count('nothing is sampled') == 1, f'not one line: {profd.stderr}')
    server.tell(script=[])
    wait_for(lambda: not spooled_ids(spool), 'they are sent')
    wait_for(lambda: not let_go(target), 'it is sampled again')
    check(ctl.status()['daemon']['servers'][0]['refusal'] is None and
          profd.stderr.count('accepts the DSN again') == 1, profd.stderr)
    profd.interrupt()
    check(not profd.stats['chunks']['discarded'] and
          profd.stats['spool']['send_error'] == 0, f'{profd.stats["chunks"]}')


def test_a_limit_on_duration(box):
    """Chunks have two categories; a limit on either one stops them."""
    limit = {'headers': {'X-Sentry-Rate-Limits': '3600:profile_duration:key'}}
    server, target, profd = start(box, [limit], output=None)
    wait_let_go(profd, target)
    profd.interrupt()
    check(len(server.envelopes) == 1, 'something was sent')


def test_a_host_whose_clock_is_wrong(box):
    """The server's Date shows that the clock is wrong. The times of chunks are
    not corrected."""
    dated = {'headers': {'Date': formatdate(time.time() + 3600, usegmt=True)}}
    run = box.make_dir('run') / 'profd.sock'
    _, _, profd = start(box, [dated] * 999, '--socket', run)
    wait_for(lambda: 'degraded: the clock differs from a server' in
             profd.stderr, 'the line')
    ctl = control.Control(box, run)
    told, = wait_for(lambda: [s for s in ctl.status()['daemon']['servers']
                              if s['clock_ahead_s']], 'the field')
    check(3590 <= told['clock_ahead_s'] <= 3600, f'{told}')
    told, = wait_for(lambda: [s for s in ctl.status()['daemon']['servers']
                              if s['delivered_s'] is not None], 'a delivery')
    check(0 <= told['delivered_s'] < 3600, f'{told}')
    check('the clock of this host is 3' in ctl.run('status').stdout, 'the table')
    total = openmetrics.total
    check(total(ctl.metrics(), 'server_clock_ahead_seconds') > 3500 and
          0 <= total(ctl.metrics(), 'delivery_age_seconds') < 3600, 'metrics')
    profd.interrupt()


def test_a_target_that_ends_meanwhile(box):
    """The end of the last target ends the daemon, as usual."""
    _, target, profd = start(box, [LONG], output=None)
    wait_let_go(profd, target)
    target.end()
    profd.finish()
    check_counts(profd)


def test_it_goes_on_as_another_profiler(box):
    """Each answer sets a limit: a chunk, a pause, a chunk of a new profiler.
    """
    server, _, profd = start(box, [SHORT] * 50, output=None)
    wait_for(lambda: len(server.envelopes) >= 3, 'three chunks')
    profd.interrupt()
    server.check_requests()
    check_counts(profd)
    check(profd.stats['rate_limit']['pauses'] >= 2, f'{profd.stats}')
    # Each pause begins when the broker learns of the limit, and is over by
    # then.
    check(profd.stats['rate_limit']['paused_s'] > 0, f'{profd.stats}')
    chunks = server.chunks
    check(len({c['profiler_id'] for c in chunks}) == len(chunks),
          'the same profiler_id after a pause')

    def times(chunk):
        return [s['timestamp'] for s in chunk['profile']['samples']]
    for before, after in zip(chunks, chunks[1:]):
        # The pause is one second, up to the precision of a timestamp.
        check(min(times(after)) - max(times(before)) > 0.999,
              'it was sampled in the pause')


def test_the_end_before_it_goes_on(box):
    """A target that was profiled before the pause counts as profiled."""
    path = box.make_dir('run') / 'socket'
    _, target, profd = start(box, [SHORT] * 50, '--socket', path, output=None)
    wait_let_go(profd, target)
    # Without unwind capture attaches to no target.
    unwind, = profd.helpers()['unwind']
    os.kill(unwind, signal.SIGSTOP)
    ctl = control.Control(box, path)
    wait_for(lambda: ctl.target(target.pid)['state'] != 'limited',
             'the end of the pause')
    profd.interrupt()
    check('was not profiled' not in profd.stderr, profd.stderr)


def test_files_are_written_all_the_same(box):
    server, target, profd = start(box, [LONG])
    wait_for(lambda: 'takes no profiles' in profd.stderr, 'it is said')
    profd.wait_chunks(2)
    check(not let_go(target) and has_ticks(profd), 'it was let go')
    profd.interrupt()
    check(len(server.envelopes) == 1, 'something was sent')
    check(profd.stats['rate_limit'] == {'pauses': 0, 'paused_s': 0},
          f'{profd.stats["rate_limit"]}')
    check_counts(profd)


if __name__ == '__main__':
    harness.main(globals())
