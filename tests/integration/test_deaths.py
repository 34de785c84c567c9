#!/usr/bin/python3
"""Children of the broker that die are replaced. The broker keeps nothing of a
dead child but its statistics.
"""

import os
import pathlib
import signal

import harness
import sanitized
from harness import check, proc_status, wait_for
from test_broker import check_sums, message_types, take_over
from test_control import listening

harness.filters_kill()

HERE = pathlib.Path(__file__).parent

# How often each child is killed in the test of the broker's memory.
KILLS = 4

# Memory that malloc may keep. A heartbeat page alone has 400 KB.
RSS_SLACK_KB = 300
# The sanitizer keeps what was freed.
if sanitized.is_sanitized():
    RSS_SLACK_KB = 2048


# Together with unwind the only chunk is lost.
ALL_IS_LOST = 'sentry-profd: everything is lost: no chunk of this run was ' \
    'sent, written or put into a spool (chunks lost: 1)\n'


def test_child_that_never_works(box):
    """A child that fails after the first one has worked is restarted at
    growing intervals, and reported once. test_starts.py tests children that
    never work."""
    target = box.napper()
    for child in 'capture', 'unwind':
        starts = box.make_dir('starts') / 'starts'
        directory = take_over(box, child,
                              f'#!/bin/sh\necho x >>{starts}\n'
                              f'[ $(wc -l <{starts}) = 1 ] || exit 3\n'
                              f'exec {harness.BUILD.resolve()}/'
                              f'sentry-profd-{child}\n')
        profd = box.profd([target], '--release', 'a@1',
                          exe=directory / 'sentry-profd')
        profd.wait_attached()
        pid = profd.helpers()[child][0]
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: starts.exists() and
                 len(starts.read_text().split()) >= 8 and
                 'it is started again' in profd.stderr, f'{child}: eight starts')
        profd.signal(signal.SIGINT)
        profd.wait()
        lost = 'nothing is sampled' if child == 'capture' else \
            'no chunk is made'
        ended = f'sentry-profd-{child} ended with status 3'
        check(profd.stderr ==
              f'sentry-profd: warning: sentry-profd-{child} (pid {pid}) was ended by '
              'signal 9 (Killed): starting it again\n'
              f'sentry-profd: {ended}, 8 times in a row: it is started again '
              f'every 5 s, and {lost} until it keeps running; its messages above, '
              'if there are any, say why\n' + (
                  '' if child == 'capture' else ALL_IS_LOST),
              f'{child}: {profd.stderr}')


def test_unwind_that_does_not_start_again(box):
    """The chunk that it was making counts as lost once, not once for each
    restart."""
    target = box.napper()
    starts = box.make_dir('starts') / 'starts'
    directory = take_over(
        box, 'unwind', f'#!/bin/sh\necho x >>{starts}\n'
        f'[ $(wc -l <{starts}) = 1 ] || exit 3\n'
        f'exec {harness.BUILD.resolve()}/sentry-profd-unwind\n')
    profd = box.profd([target], '--chunk-seconds', '1',
                      exe=directory / 'sentry-profd')
    wait_for(lambda: profd.chunks, 'a chunk')
    profd.wait_attached()
    unwind, = profd.helpers()['unwind']
    os.kill(unwind, signal.SIGKILL)
    wait_for(lambda: len(starts.read_text().split()) >= 5, 'four attempts')
    profd.signal(signal.SIGINT)
    profd.wait()
    check_sums(profd)
    check(profd.stats['chunks']['discarded'] == {'unwind_died': 1},
          f'{profd.stats["chunks"]}')


def test_nothing_is_kept_of_dead_children(box):
    target = box.napper()
    profd = box.profd([target]).wait_attached()

    def settled():
        """Returns true if all children run, and the helper for files does not.
        """
        helpers = profd.helpers()
        return all(helpers.values()) and \
            len(harness.children(profd.pid)) == 3 and helpers

    def kill_all():
        old = wait_for(settled, 'the children')
        for pid in sum(old.values(), []):
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: settled() and
                 not set(sum(old.values(), [])) &
                 set(sum(profd.helpers().values(), [])), 'new children')
        profd.wait_attached()
        wait_for(settled, 'the children')

    def look():
        wait_for(settled, 'the children')
        return sorted(harness.descriptors(profd.pid).values()), int(
            proc_status(profd.pid, 'VmRSS').split()[0])

    kill_all()
    fds, rss = look()
    for _ in range(KILLS):
        kill_all()
    # A ring that is being sent holds a socket for a moment, perhaps at the
    # first check.
    wait_for(lambda: len(harness.descriptors(profd.pid)) <= len(fds),
             f'no more descriptors than before: {fds}')
    grown = look()[1] - rss
    check(grown < RSS_SLACK_KB, f'the broker has {grown} KB more')
    profd.interrupt()
    check_sums(profd)


def test_figures_of_the_ended_outlive_capture(box):
    ended, other = box.napper(), box.napper()
    profd = box.profd([ended, other], '--chunk-seconds', '1').wait_attached()
    wait_for(lambda: profd.chunks, 'a chunk')
    ended.end()
    old, = profd.helpers()['capture']
    profd.pids.remove(ended.pid)
    wait_for(lambda: harness.tracer(other.pid) == old, 'capture to go on')
    profd.wait_chunks(2)
    os.kill(old, signal.SIGKILL)
    wait_for(lambda: harness.tracer(other.pid) not in (0, old),
             'another capture')
    profd.interrupt()
    check_sums(profd)
    figures, = [t for t in profd.stats['targets'] if t['pid'] == ended.pid]
    check(figures['samples_taken'] > 0,
          f'the samples of the one that ended are forgotten: {figures}')


def test_table_after_a_death(box):
    """The table has what the new unwind process got, and a line says that it is not all."""
    ended, other = box.target('shares'), box.target('shares')
    profd = box.profd([ended, other], table=True).wait_attached()
    ended.end()
    profd.pids.remove(ended.pid)
    old, = profd.helpers()['unwind']
    os.kill(old, signal.SIGKILL)
    wait_for(lambda: set(profd.helpers()['unwind']) - {old}, 'another unwind')
    harness.wait_work(other.pid, 0.5)  # enough samples for a table
    profd.interrupt()
    check_sums(profd)
    check('busy_seventy' in profd.stdout, f'no table: {profd.stdout}')
    check('the table lacks samples: the sentry-profd-unwind that had them has ended' in
          profd.stderr, profd.stderr)


def test_ship_with_an_envelope_on_its_way(box):
    """ship's successor gets the envelope."""
    target = box.napper()
    profd = box.profd([target], '--chunk-seconds', '1').wait_attached()
    ship, = wait_for(lambda: profd.helpers()['ship'], 'ship')
    os.kill(ship, signal.SIGSTOP)
    wait_for(lambda: list(profd.output.glob('.*.part')),
             'an envelope that is not written')
    os.kill(ship, signal.SIGKILL)
    wait_for(lambda: profd.chunks, 'the envelope, after all')
    profd.interrupt()
    check_sums(profd)
    check(profd.stats['chunks']['discarded'] == {}, f'{profd.stats["chunks"]}')
    check(list(profd.output.glob('.*')) == [], 'a part of an envelope is left')


def test_unwind_that_dies_while_one_is_let_go_of(box):
    """The target's last record went to the dead process. The new unwind closes
    the session, so the target can be profiled again."""
    target = box.napper()
    profd, ctl = listening(box, [target])
    profd.wait_attached()
    capture, = profd.helpers()['capture']
    unwind, = profd.helpers()['unwind']
    # If this takes a second, capture is replaced, and the test shows nothing.
    os.kill(capture, signal.SIGSTOP)
    ctl.run('stop', target.pid)
    os.kill(unwind, signal.SIGKILL)
    wait_for(lambda: set(profd.helpers()['unwind']) - {unwind} and
             'was ended by signal 9' in profd.stderr, 'another unwind')
    os.kill(capture, signal.SIGCONT)
    ctl.wait_state(target.pid, 'stopped')
    wait_for(lambda: harness.tracer(target.pid) == 0, 'it to be let go of')
    ctl.run('start', target.pid)
    profd.wait_attached().wait_looks()
    profd.interrupt()
    check_sums(profd)


def test_session_that_unwind_closes(box):
    """unwind closes a session by itself: capture detaches from the target,
    whose chunks no process makes, and the target is profiled anew."""
    target = box.napper()
    directory = take_over(box, 'unwind', (HERE / 'hostile.py').read_text())
    (directory / 'types').write_text('\n'.join(message_types()))
    (directory / 'attack').write_text('closed twice')
    # It attaches as soon as the session is open, since it does not ask about LeakSanitizer.
    profd = box.profd([target], '--debug', '--shutdown-timeout', '2', '--leak-check', 'attach',
                      exe=directory / 'sentry-profd')
    wait_for(lambda: profd.stderr.count(f'attached to process {target.pid}\n')
             >= 2, 'another run of it')
    profd.signal(signal.SIGINT)
    check(profd.wait() in (0, 1), profd.stderr)
    check_sums(profd)


def test_sessions_that_unwind_closes(box):
    """unwind closes all sessions: the interval to the next attempt grows, and
    a line reports that."""
    target = box.napper()
    directory = take_over(box, 'unwind', (HERE / 'hostile.py').read_text())
    (directory / 'types').write_text('\n'.join(message_types()))
    (directory / 'attack').write_text('closing')
    profd = box.profd([target], '--shutdown-timeout', '2',
                      exe=directory / 'sentry-profd')
    opened = directory / 'opened'
    wait_for(lambda: opened.exists() and
             len(opened.read_text().split()) >= 4, 'four more sessions')
    times = [float(t) for t in opened.read_text().split()]
    # The first at once, then after one, two and four seconds. Each session is
    # opened at least that long after the end of the last.
    check(times[3] - times[0] >= 7, f'opened at {times}')
    check(profd.stderr.count('sentry-profd-unwind has failed 3 times with the profile of '
                             f'process {target.pid}') == 1, profd.stderr)
    profd.signal(signal.SIGINT)
    check(profd.wait() in (0, 1), profd.stderr)
    check_sums(profd)


if __name__ == '__main__':
    harness.main(globals())
