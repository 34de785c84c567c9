#!/usr/bin/python3
"""Each target may have its own DSN: its chunks go to that server, and faults
of that server do not affect others.
"""

import os
import time

import harness
from account import check_counts
from control import Control, listens
from envelopes import KEY
from harness import BUILD, check, tracer, wait_for

LIMIT = {'headers': {'X-Sentry-Rate-Limits': '3600:profile_chunk:key'}}


def start(box, dsns, *args, **options):
    """Starts a daemon with a target for each DSN."""
    directory = box.make_dir('etc')
    config = directory / 'profd.conf'
    targets = [box.napper() for _ in dsns]
    text = f'[sentry]\ndsn = {dsns[0]}\n'
    for target, dsn in zip(targets, dsns):
        pid_file = directory / f'{target.pid}.pid'
        pid_file.write_text(f'{target.pid}\n')
        text += (f'[target "of-{target.pid}"]\npid_file = {pid_file}\n'
                 f'dsn = {dsn}\nautostart = yes\nmin_age_seconds = 0\n'
                 'profile_session_sample_rate = 1.0\n')
    config.write_text(text)
    config.chmod(0o600)
    profd = box.profd([], '--config', config, '--chunk-seconds', '1',
                      '--socket', directory / 'socket', *args, output=None,
                      **options)
    return targets, profd


def two_servers(box, **first):
    return [box.server(tls=False, **first), box.server(tls=False)]


def test_more_dsns_than_processes(box):
    """The 33rd DSN is a fault of the configuration. The daemon starts, and says
    which section has no process for its chunks."""
    dsns = [f'http://key{n}@127.0.0.1:9/1' for n in range(33)]
    targets, profd = start(box, dsns)
    config, last = next(box.dir.glob('*etc/profd.conf')), targets[-1].pid
    ctl = Control(box, config.parent / 'socket')
    wait_for(lambda: listens(ctl.path), 'it starts')
    found = ctl.wait_state(last, 'left_out')
    check('DSN is one too many' in found['last_error'], f'{found}')
    wait_for(lambda: len(ctl.status()['targets']) == len(targets), 'all')
    found = [t['pid'] for t in ctl.status()['targets']
             if t['state'] == 'left_out']
    check(found == [last], f'{found}')
    line = f'[target "of-{last}"]: its DSN is one too many'
    check(sum(line in said and 'degraded: ' not in said for said in profd.stderr.splitlines()) == 1,
          profd.stderr)
    program = box.start([BUILD / 'sentry-profd', '--check-config', '--config',
                         config])
    check(program.wait() == 2 and line in program.stderr, program.report())


def said_of(profd, server, text):
    """Returns how often a line names the server, without the key."""
    check(KEY not in profd.stderr, 'the key is shown')
    return profd.stderr.count(f' localhost:{server.port}/42: {text}')


def test_each_server_has_its_own(box):
    servers = two_servers(box)
    _, profd = start(box, [s.dsn for s in servers])
    for server in servers:
        wait_for(lambda s=server: len(s.envelopes) >= 2, 'chunks')
    check(len(profd.helpers()['ship']) == 2, f'{profd.helpers()}')
    profd.interrupt()
    check_counts(profd)
    for server in servers:
        server.check_requests()
        check(len({c['profiler_id'] for c in server.chunks}) == 1,
              'chunks of another target')
    check(profd.stats['chunks']['sent'] ==
          sum(len(s.chunks) for s in servers), f'{profd.stats["chunks"]}')


def test_a_limit_is_one_servers(box):
    servers = two_servers(box, script=[LIMIT])
    targets, profd = start(box, [s.dsn for s in servers])
    wait_for(lambda: 'nothing is sampled' in profd.stderr and
             tracer(targets[0].pid) == 0, 'it is let go')
    n = len(servers[1].envelopes)
    wait_for(lambda: len(servers[1].envelopes) >= n + 2, 'more chunks')
    check(tracer(targets[0].pid) == 0 and tracer(targets[1].pid) != 0,
          'the wrong one is profiled')
    profd.interrupt()
    check_counts(profd)
    check(len(servers[0].envelopes) == 1, 'something was sent')
    said = [said_of(profd, s, 'the server takes no profiles') for s in servers]
    check(said == [1, 0], f'{said}: {profd.stderr}')


def test_losses_are_told_to_their_own_server(box):
    servers = two_servers(box, status=500)
    _, profd = start(box, [s.dsn for s in servers])
    for server in servers:
        wait_for(lambda s=server: len(s.envelopes) >= 2, 'chunks')
    profd.interrupt()
    check_counts(profd)
    refused = len(servers[0].envelopes)
    check(servers[0].reported == {'send_error': refused},
          f'{servers[0].reported}, {refused} were refused')
    check(servers[1].reported == {}, f'{servers[1].reported}')


def test_one_that_stalls(box):
    """The chunks for that server wait in memory; the others are sent."""
    servers = two_servers(box, script=[{'do': 'stall'}] * 50)
    _, profd = start(box, [s.dsn for s in servers])
    wait_for(lambda: servers[0].requests, 'a request that stalls')
    n = len(servers[1].envelopes)
    wait_for(lambda: len(servers[1].envelopes) >= n + 3, 'more chunks')
    check(all(r['status'] is None for r in servers[0].requests),
          'it did not stall')


def test_a_spool_for_each(box):
    """The servers are away; later each gets its own chunks."""
    servers = two_servers(box)
    dsns = [s.dsn for s in servers]
    for server in servers:
        server.down()
    spool = box.dir / 'spool'
    _, profd = start(box, dsns, '--spool', spool)
    wait_for(lambda: len(list(spool.glob('*.gz'))) >= 2 and
             len(list(spool.glob('*/*.gz'))) >= 2, 'chunks wait')
    profd.interrupt()
    kept = check_counts(profd)['spooled']
    check(profd.stats['spool']['waiting'] == kept ==
          len(list(spool.rglob('*.gz'))), f'{profd.stats}')
    for server in servers:
        check(said_of(profd, server, 'the server does not answer: ') == 1,
              f'{profd.stderr}')
        server.up()
    _, profd = start(box, dsns, '--spool', spool)
    wait_for(lambda: not list(spool.rglob('*.gz')), 'an empty spool')
    profd.interrupt()
    check(profd.stats['spool']['sent'] == kept, f'{profd.stats["spool"]}')
    for server in servers:
        server.check_requests()
        # The chunks are those of both runs, and no others.
        check(len({c['profiler_id'] for c in server.chunks}) == 2,
              'chunks of another target')


def test_a_dsn_that_changes_its_place(box):
    """A DSN moves from [sentry] to a target, and back. Its chunks go to the
    server for which they were made."""
    servers = two_servers(box)
    for server in servers:
        server.down()
    spool = box.dir / 'spool'
    dsns = [s.dsn for s in servers]
    _, profd = start(box, dsns, '--spool', spool)
    wait_for(lambda: list(spool.glob('*.gz')) and list(spool.glob('*/*.gz')),
             'chunks wait')
    profd.interrupt()
    kept = check_counts(profd)['spooled']
    check(len(list(spool.rglob('*.gz'))) == kept, 'files')
    for server in servers:
        server.up()
    _, profd = start(box, dsns[::-1], '--spool', spool)
    wait_for(lambda: not list(spool.rglob('*.gz')), 'an empty spool')
    profd.interrupt()
    check_counts(profd)
    check(profd.stats['spool']['sent'] == kept and
          profd.stats['spool']['expired'] == 0, f'{profd.stats["spool"]}')
    check('found again' in profd.stderr, profd.stderr)
    for server in servers:
        server.check_requests()
        ids = [c['chunk_id'] for c in server.chunks]
        check(len(ids) == len(set(ids)), 'some came twice')
        # The chunks are those of both runs, and no others.
        check(len({c['profiler_id'] for c in server.chunks}) == 2,
              'chunks of another target')


def test_a_dsn_that_nobody_has_any_more(box):
    """The chunks wait, which is reported once, and are dropped when they are
    too old."""
    servers = two_servers(box)
    servers[1].down()
    spool = box.dir / 'spool'
    dsns = [servers[1].dsn, servers[0].dsn]
    _, profd = start(box, dsns, '--spool', spool)
    wait_for(lambda: list(spool.glob('*.gz')), 'a chunk waits')
    profd.interrupt()
    old = {p.name for p in spool.glob('*.gz')}
    # One chunk looks two days old, and one is new.
    path = next(spool.glob('*.gz'))
    part = spool / 'fedcba9876543210'
    part.mkdir()
    rest = path.name[16:]
    (part / (f'{int((time.time() - 2 * 86400) * 1000):016x}' + rest)) \
        .write_bytes(path.read_bytes())
    (part / path.name).write_bytes(path.read_bytes())
    os.chown(part, spool.stat().st_uid, -1)
    before = len(servers[0].envelopes)
    _, profd = start(box, [servers[0].dsn], '--spool', spool)
    wait_for(lambda: len(servers[0].envelopes) > before, 'a chunk arrives')
    profd.interrupt()
    check_counts(profd)
    check({p.name for p in spool.glob('*.gz')} == old, 'they are gone')
    check(profd.stderr.count('in the spool for another DSN') == 1 and
          profd.stderr.count('1 chunk of other DSNs removed: too old') == 1,
          profd.stderr)
    check([p.name for p in part.iterdir()] == [path.name], 'the old one')
    # They are sent when the DSN is configured again.
    servers[1].up()
    _, profd = start(box, dsns[:1], '--spool', spool)
    wait_for(lambda: not list(spool.glob('*.gz')), 'they are sent')
    profd.interrupt()
    check(profd.stats['spool']['sent'] == len(old), f'{profd.stats["spool"]}')


if __name__ == '__main__':
    harness.main(globals())
