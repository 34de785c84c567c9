#!/usr/bin/python3
"""Losses are counted: for each target all expected samples are taken or
missed, and all chunks have arrived or have a reason, whichever process dies,
and whatever cannot be written or sent.
"""

import os
import re
import shutil
import signal
import time

import harness
from account import check_sums
from harness import check, wait_for

# Reasons of chunks that never became an envelope.
NEVER_AN_ENVELOPE = ('insufficient_data', 'unwind_died', 'too_large',
                     'exec_budget')

# daemon/unwind/exec_budget.h
EXEC_BURST = 30
EXEC_EVERY_S = 10
EXECS = EXEC_BURST + 10
BEGINS, ENDS = 'one program after another', 'has run the same program'


def check_identities(profd, server=False):
    check_sums(profd.stats, 'sent' if server else 'written')
    for f in [profd.stats, *profd.stats['targets']]:
        chunks = f['chunks']
        lost = chunks['discarded']
        files = chunks['made'] - sum(lost.get(r, 0) for r in NEVER_AN_ENVELOPE)
        check(files == chunks['written'] + chunks['unwritten'], f'{chunks}')
    chunks = profd.stats['chunks']
    check(chunks['made'] > 0, f'{chunks}')
    check(chunks['written'] == len(profd.envelopes),
          f'{len(profd.envelopes)} files, {chunks}')


def targets(box):
    return [box.target('shares'), box.target('short_threads'),
            box.target('threads')]


def kill(profd, kind, chunks=4):
    """Kills one of the children, and waits until it is replaced."""
    pid = profd.helpers()[kind][0]
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: profd.helpers()[kind] not in ([], [pid]), f'a new {kind}')
    profd.wait_attached()
    profd.wait_chunks(chunks)


def test_each_process_dies(box):
    """Sends to a server and writes files, at a rate that is more than the
    server accepts."""
    server = box.server()
    profd = box.profd(targets(box), '--dsn', server.dsn, '--chunk-seconds', '1',
                      '--rate', '1000', env=server.env).wait_attached()
    for kind in ('unwind', 'ship', 'capture', 'unwind', 'capture', 'ship'):
        kill(profd, kind)
    profd.interrupt()
    check_identities(profd, server=True)
    stats = profd.stats
    check(stats['missed'].get('no_capture', 0) > 0, f'{stats["missed"]}')
    check(0 < stats['chunks']['discarded'].get('unwind_died', 0) <= 6,
          f'{stats["chunks"]}')
    # A chunk that ship had sent before it died is sent again, and counts once.
    check(stats['chunks']['sent'] <= len(server.chunks),
          f'{len(server.chunks)} arrived, {stats["chunks"]}')


def test_samples_before_the_death_of_capture(box):
    """unwind reads what capture had written, also what capture had not announced yet."""
    profd = box.profd(targets(box)).wait_attached()
    profd.wait_looks()
    # The first 2 s are announced more often.
    time.sleep(2.5)
    kill(profd, 'capture', chunks=0)
    profd.interrupt()
    for f in [profd.stats, *profd.stats['targets']]:
        unwound = sum(f['unwind'][k] for k in ('complete', 'truncated', 'retaken')) + \
            sum(f['unwind']['failed'].values())
        # capture may be killed between a record and its count.
        check(abs(f['captured'] - unwound) <= 1, f'{f["captured"]} captured, {f["unwind"]}')


def lose_the_directory(box, *args, **options):
    profd = box.profd([box.napper()], '--chunk-seconds', '1', *args,
                      **options)
    profd.wait_chunks(2)

    def gone():
        # A file may be created or renamed meanwhile.
        shutil.rmtree(profd.output, ignore_errors=True)
        return not profd.output.exists()
    wait_for(gone, 'the directory is gone')
    wait_for(lambda: profd.stderr.count('cannot write an envelope') > 3,
             'files that cannot be written')
    profd.output.mkdir()
    profd.interrupt()
    for f in profd.stats['targets']:
        chunks = f['chunks']
        check(chunks['unwritten'] > 1, f'{chunks}')
    return profd


def test_no_files_and_a_server(box):
    """The chunks arrive nevertheless; only the copies are lost."""
    server = box.server()
    profd = lose_the_directory(box, '--dsn', server.dsn, env=server.env)
    chunks = profd.stats['chunks']
    check(chunks['made'] == chunks['sent'] + sum(chunks['discarded'].values())
          == chunks['written'] + chunks['unwritten'], f'{chunks}')
    check('write_error' not in chunks['discarded'], f'{chunks}')
    check(len(server.chunks) == chunks['sent'], f'{chunks}')


def test_no_files(box):
    profd = lose_the_directory(box)
    chunks = profd.stats['chunks']
    check(chunks['made'] == chunks['written'] + chunks['unwritten'] and
          chunks['unwritten'] == chunks['discarded'].get('write_error'),
          f'{chunks}')


def test_no_server(box):
    port = harness.free_port()
    profd = box.profd(targets(box), '--dsn', f'http://key@127.0.0.1:{port}/1',
                      '--chunk-seconds', '1', '--shutdown-timeout', '2')
    profd.wait_chunks(7)
    profd.interrupt()
    check_identities(profd, server=True)
    check(profd.stats['chunks']['sent'] == 0, f'{profd.stats["chunks"]}')


def test_an_end_in_the_middle(box):
    """ship does not answer and is given up, because the server never finishes.
    """
    profd = box.profd(targets(box), '--chunk-seconds', '1').wait_attached()
    profd.wait_chunks(3)
    ship, = profd.helpers()['ship']
    os.kill(ship, signal.SIGSTOP)
    profd.signal(signal.SIGINT)
    wait_for(lambda: not profd.helpers()['capture'], 'the end of sampling')
    profd.signal(signal.SIGINT)
    profd.finish()
    check_identities(profd)
    check(profd.stats['chunks']['discarded'].get('shutdown', 0) > 0,
          f'{profd.stats["chunks"]}')


LOST_LINE = 'everything is lost: no chunk of this run was sent'


def check_all_lost(box, lose, *args, **options):
    """Runs sentry-profd for one chunk that is not kept anywhere; lose(profd)
    may cause the loss. Checks that all is lost."""
    profd = box.profd([box.napper()], *args, '--shutdown-timeout', '2',
                      **options).wait_attached()
    profd.wait_looks()
    lose(profd)
    profd.interrupt(status=harness.ALL_LOST)
    check(profd.stderr.count(LOST_LINE) == 1, profd.stderr)
    return profd.stats['chunks']


def test_all_is_lost_without_a_server(box):
    """Each has an exit status that a script can check."""
    stranger = box.server()
    answers, denies = (box.server(tls=False, status=s) for s in (400, 403))
    for name, dsn, env in (
            ('no such host', 'http://key@no-such-host.invalid/1', None),
            ('refused', f'http://key@127.0.0.1:{harness.free_port()}/1', None),
            ('another authority', stranger.dsn, box.server().env),
            ('refuses the chunk', answers.dsn, None),
            ('refuses the DSN', denies.dsn, None)):
        chunks = check_all_lost(box, lambda _: None, '--dsn', dsn, output=False,
                                env=env)
        check(chunks['made'] == sum(chunks['discarded'].values()) == 1,
              f'{name}: {chunks}')


def test_all_is_lost_without_a_file(box):
    chunks = check_all_lost(box, lambda p: shutil.rmtree(p.output))
    check(chunks['discarded'] == {'write_error': 1}, f'{chunks}')


def test_what_is_spooled_is_not_lost(box):
    profd = box.profd([box.napper()], '--dsn',
                      f'http://key@127.0.0.1:{harness.free_port()}/1',
                      '--shutdown-timeout', '2', '--spool',
                      box.make_dir('kept') / 'spool', output=False)
    profd.wait_attached().wait_looks()
    profd.interrupt()
    check(profd.stats['chunks']['spooled'] == 1 and
          LOST_LINE not in profd.stderr, profd.stderr)


def has_last(chunk):
    """Returns true for the last of exec_again's programs."""
    return 'stays' in {f.get('function') for f in chunk['profile']['frames']}


def execute_on(box, chunk_s, server):
    """Executes one program after another, and then one that stays."""
    target = box.target('exec_again', EXECS)
    profd = box.profd([target], '--dsn', server.dsn, '--rate', '1000',
                      '--chunk-seconds', chunk_s, env=server.env)
    profd.wait_attached()
    for n in range(1, EXECS + 1):
        profd.wait_looks(8)
        target.signal(signal.SIGUSR1)
        target.wait_line(f'again {n}')
    return profd


def check_held_back(profd, server, chunk_s):
    """Returns how many chunks were held back."""
    check_identities(profd, server=True)
    chunks = profd.stats['chunks']
    lost = chunks['discarded'].get('exec_budget', 0)
    # Plus the chunks that become due meanwhile.
    sent = EXEC_BURST + profd.lived_s / EXEC_EVERY_S + \
        profd.lived_s / chunk_s + 2
    check(chunks['sent'] <= sent, f'more than {sent}: {chunks}')
    check(lost <= EXECS - EXEC_BURST, f'not of an exec: {chunks}')
    check(server.reported.get('backpressure', 0) == lost,
          f'{server.reported}, {chunks}')
    check((BEGINS in profd.stderr) == (lost > 0), f'{chunks}, {profd.stderr}')
    return lost


def test_one_program_after_another(box):
    """Each program would have a chunk, but most of them are not sent. The
    program that runs at the end has its chunk; without names if unwind has not read its maps
    before the end of the run."""
    server = box.server()
    profd = execute_on(box, 60, server)
    since = time.time()
    profd.wait_looks()
    profd.interrupt()
    check_held_back(profd, server, 60)
    last = max(s['timestamp'] for s in profd.chunks[-1]['profile']['samples'])
    check(last > since, f'the last program has no chunk: {last}, {since}')


def test_the_last_of_many_programs(box):
    """The last program stays, and all its chunks are sent. A line reports the
    end of the limit."""
    server = box.server()
    profd = execute_on(box, 5, server)
    wait_for(lambda: any(map(has_last, profd.chunks)), 'a chunk of the last')
    # All that were held back have been reported by now.
    wait_for(lambda: profd.stderr.count(ENDS) == profd.stderr.count(BEGINS),
             'the end of it is told')
    profd.interrupt()
    lost = check_held_back(profd, server, 5)
    told = re.findall(rf'{ENDS} .*; (\d+) chunk', profd.stderr)
    check(sum(map(int, told)) == lost and
          len(told) <= 1 + profd.lived_s / EXEC_EVERY_S,
          f'{lost} were held back: {profd.stderr}')


if __name__ == '__main__':
    harness.main(globals())
