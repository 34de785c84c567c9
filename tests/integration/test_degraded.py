#!/usr/bin/python3
"""The list of degraded states: the begin and the end of each is a line of the log, and in between
it is in status, metrics, doctor and STATUS= of systemd.
"""

import os
import signal
import time
from email.utils import formatdate

import harness
import openmetrics
from control import Control
from harness import Skip, check, wait_for
from test_notify import Manager
from test_spool import dsn_of, ids, profd_with, spool_of_a_run, waiting

FORMER = 12345


def kinds(ctl):
    return [row['kind'] for row in ctl.status()['daemon']['degraded']]


def give_away(spool):
    """Gives the spool to another uid, as if the image had been built anew."""
    for path in [spool, *spool.iterdir()]:
        os.chown(path, FORMER, FORMER)


def end_at_once(profd):
    """Ends the daemon by two signals. If the second one comes before the daemon has got the first,
    the kernel makes one of them."""
    profd.signal(signal.SIGTERM)
    wait_for(lambda: not profd.helpers()['capture'], 'sampling ends')
    profd.signal(signal.SIGTERM)
    profd.wait()


def test_a_spool_of_the_former_account(box):
    if os.geteuid() != 0:
        raise Skip('only root can change an owner')
    spool = box.dir / 'spool'
    port = harness.free_port()
    chunks = spool_of_a_run(box, spool, port)
    owner = spool.stat().st_uid
    give_away(spool)
    server = box.server(tls=False, port=port)
    profd = profd_with(box, spool, port)
    wait_for(lambda: not waiting(spool) or not profd.running(), 'the chunks sent')
    check(profd.running(), profd.stderr)
    profd.interrupt()
    check(f'belonged to uid {FORMER}, a former user of sentry-profd-ship: '
          f'sentry-profd has given it and its files to uid {owner}\n' in profd.stderr
          and spool.stat().st_uid == owner, profd.stderr)
    check(set(chunks) <= set(ids(server.envelopes)), 'the chunks of the first run')


def test_a_spool_that_is_not_safe(box):
    """The default spool has a file that is none of ours."""
    if os.geteuid() != 0:
        raise Skip('only root has the default spool')
    spool = '/var/lib/sentry-profd/spool'
    # bash removes the option --spool, which the harness adds if it is not there.
    wrapper = ['unshare', '-m', 'bash', '-c',
               f'mount -t tmpfs none /var/lib && mkdir -p {spool} && touch {spool}/letter &&'
               f'chmod 700 {spool} && chown -R {FORMER} {spool} && exec "${{@:1:$#-2}}"', 'bash']
    socket = box.make_dir('run') / 'socket'
    profd = box.profd([box.napper()], '--dsn', dsn_of(harness.free_port()), '--socket', socket,
                      '--spool', 'default', wrapper=wrapper)
    profd.wait_attached()
    row, = [r for r in Control(box, socket).status()['daemon']['degraded'] if r['kind'] == 'spool']
    check(f'belongs to uid {FORMER}' in row['reason'] and row['since_s'] >= 0, f'{row}')
    check(f'degraded: no spool, because {spool} cannot be used: belongs to uid' in profd.stderr,
          profd.stderr)
    end_at_once(profd)


def test_a_spool_that_vanishes(box):
    spool, socket = box.dir / 'spool', box.make_dir('run') / 'socket'
    manager = Manager(box)
    profd = profd_with(box, spool, harness.free_port(), '--socket', socket, env=manager.env())
    profd.wait_attached()
    ctl = Control(box, socket)
    check('spool' not in kinds(ctl), f'{kinds(ctl)}')
    check(openmetrics.total(ctl.metrics(), 'degraded', kind='spool') == 0, 'metrics')
    for path in spool.iterdir():
        path.unlink()
    spool.rmdir()
    wait_for(lambda: 'spool' in kinds(ctl), 'the row')
    check(openmetrics.total(ctl.metrics(), 'degraded', kind='spool') == 1, 'metrics')
    check('no spool, because its directory was removed: chunks wait in memory' in
          ctl.run('status').stdout, 'the table')
    check(profd.stderr.count('degraded: no spool') == 1, profd.stderr)
    while not any('; degraded: no spool' in line for line in manager.said):
        manager.take()
    doctor = ctl.run('doctor', '--socket', socket, status=1).stdout
    check('daemon: degraded for ' in doctor and 'no spool, because its directory' in doctor, doctor)
    end_at_once(profd)


def test_a_spool_that_files_set_aside_fill(box):
    spool, socket = box.make_dir('spool'), box.make_dir('run') / 'socket'
    with (spool / 'letter').open('wb') as file:
        file.truncate(256 << 20)
    profd = profd_with(box, spool, harness.free_port(), '--socket', socket)
    profd.wait_attached()
    ctl = Control(box, socket)
    wait_for(lambda: 'spool' in kinds(ctl), 'the row')
    check('no spool, because its files that end with .bad fill it (remove them, or raise '
          'spool_max_bytes): chunks wait in memory' in ctl.run('status').stdout, 'the table')
    (spool / 'letter.bad').unlink()
    wait_for(lambda: 'spool' not in kinds(ctl), 'the end of the row')
    wait_for(lambda: waiting(spool), 'chunks')
    check(profd.stderr.count('degraded: no spool') == 1, profd.stderr)
    end_at_once(profd)


def test_the_end_of_a_state(box):
    """The clock of this host is wrong, and then right."""
    wrong = {'headers': {'Date': formatdate(time.time() + 3600, usegmt=True)}}
    server = box.server(script=[wrong, wrong])
    socket = box.make_dir('run') / 'socket'
    profd = box.profd([box.napper()], '--chunk-seconds', '2', '--dsn', server.dsn, '--socket',
                      socket, env=server.env)
    wait_for(lambda: 'degraded: the clock differs' in profd.stderr, 'the begin')
    wait_for(lambda: 'ended: the clock differs' in profd.stderr.partition('no longer degraded')[2],
             'the end')
    check('clock' not in kinds(Control(box, socket)), 'status')
    check(profd.stderr.count('the clock differs') == 2, profd.stderr)
    profd.interrupt()


if __name__ == '__main__':
    harness.main(globals())
