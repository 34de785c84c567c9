#!/usr/bin/python3
"""Failures at the start of profiling: a user namespace without other users,
children that cannot be started, targets that capture cannot attach to. The
daemon goes on without optional parts, or ends with one line.
"""

import os
import re
import signal
import subprocess

import harness
import stranger
from account import check_sums
from harness import Skip, check, state, wait_for

NAMESPACE = ['unshare', '-Urpf', '--mount-proc', '--kill-child']

# The target is a child of sh, so its pid is known.
IN_NAMESPACE = r'''
"$1" > target & target=$!
until grep -q ready target; do sleep 0.01; done
"$2" --pid $target --duration 5 --output output --stats stats.json --quiet \
	--cpu-budget 0
status=$?
kill -9 $target
exit $status
'''


def in_namespace(box, **options):
    """Runs sentry-profd and a target in a user namespace whose only user is
    root."""
    if subprocess.run([*NAMESPACE, 'true'], capture_output=True,
                      check=False).returncode != 0:
        raise Skip('user namespaces are refused')
    directory = box.make_dir('namespace')
    if options:
        os.chown(directory, stranger.UID, stranger.UID)
    bin_dir = stranger.copy(box, [*stranger.EXECUTABLES, 'targets/shares'])
    return box.start([*NAMESPACE, 'sh', '-c', IN_NAMESPACE, 'sh',
                      bin_dir / 'shares', bin_dir / 'sentry-profd'],
                     cls=harness.Profd, pids=[], cwd=directory,
                     stats_path=directory / 'stats.json',
                     output=directory / 'output', **options)


def check_namespace(box, **options):
    def turn():
        """Returns what was not seen within some seconds. On a busy machine not
        all of it is in every attempt."""
        profd = in_namespace(box, **options).finish()
        check_sums(profd.stats, arrived='written')
        stats = profd.stats
        check('privileges' not in profd.stderr, profd.stderr)
        names = {f.get('function') for c in profd.chunks
                 for f in c['profile']['frames']}
        good = stats['captured'] > 10 and stats['chunks']['written'] == 1 and \
            sum(stats['unwind']['failed'].values()) <= 2 and \
            {'busy_seventy', 'busy_thirty'} <= names
        return [] if good else [f'{stats}, {names}']
    harness.in_turns(turn)


def test_user_namespace_of_root(box):
    check_namespace(box)


def test_user_namespace_of_a_user(box):
    stranger.need_root()
    check_namespace(box, **stranger.options())


def replaced(box, kind, script):
    """Returns copies of the executables; the one of this kind is a script."""
    directory = stranger.copy(box, stranger.EXECUTABLES)
    path = directory / f'sentry-profd-{kind}'
    path.rename(directory / 'real')
    path.write_text(f'#!/bin/sh\n{script}\n')
    path.chmod(0o755)
    return directory


def profd_of(box, directory, target, *args):
    return box.profd([target], *args, exe=directory / 'sentry-profd')


def lines(profd):
    """Returns its lines without pids, except those about the release and about
    the chunk that ship did not send."""
    return [re.sub(r' \(pid \d+\)', '', l) for l in profd.stderr.splitlines()
            if not any(text in l for text in
                       ('no release', 'is lost', 'are lost'))]


def test_a_child_that_cannot_start(box):
    target = box.napper()
    for kind in ('capture', 'unwind', 'ship'):
        profd = profd_of(box, replaced(box, kind, 'exit 3'), target)
        profd.finish(status=1)
        check(lines(profd) == [
            f'sentry-profd: sentry-profd-{kind} ended with status 3 before it '
            'was ready: sentry-profd ends, since without it there is no profile'],
            profd.stderr)
        check(harness.tracer(target.pid) == 0, 'it is traced')


def test_a_child_that_is_killed_at_its_start(box):
    """A temporary cause may have killed the child, so the broker retries, but
    not for ever."""
    target = box.napper()
    for kind in ('capture', 'unwind', 'ship'):
        profd = profd_of(box, replaced(box, kind, 'kill -9 $$'), target)
        profd.finish(status=1)
        name = f'sentry-profd-{kind} was ended by signal 9 (Killed)'
        check(lines(profd) == [
            f'sentry-profd: warning: {name}: starting it again',
            f'sentry-profd: {name} before it was ready: sentry-profd ends, since '
            'without it there is no profile'], profd.stderr)
        once = replaced(box, kind, 'here=${0%/*}\n[ -e $here/mark ] && '
                        'exec $here/real\n: > $here/mark\nkill -9 $$')
        once.chmod(0o777)
        profd = profd_of(box, once, target, '--duration', '1')
        profd.finish()
        check(lines(profd) == [
            f'sentry-profd: warning: {name}: starting it again'], profd.stderr)


def silent_unwind(box, target, *args):
    return profd_of(box, replaced(box, 'unwind', 'exec sleep infinity'),
                    target, *args)


def test_duration_without_an_attachment(box):
    """unwind does not answer, so capture attaches to no target."""
    target = box.napper()
    profd = silent_unwind(box, target, '--duration', '0.5')
    profd.finish(status=1)
    check(lines(profd) == [
        f'sentry-profd: process {target.pid} was not profiled: '
        'sentry-profd ended before it could attach'], profd.stderr)


def test_target_ends_without_an_attachment(box):
    target = box.napper()
    profd = silent_unwind(box, target)
    wait_for(lambda: len(harness.children(profd.pid)) == 3, 'three children')
    target.end()
    profd.finish(status=1)
    check(lines(profd) == [
        f'sentry-profd: process {target.pid} has ended before it could be '
        'profiled'], profd.stderr)


def test_too_few_descriptors(box):
    """The threads for which there are descriptors are profiled; the rest is
    counted, and reported once.
    """
    target = box.target('cap_threads', stdin=subprocess.PIPE)
    target.process.stdin.write(b'asleep 200\n')
    target.process.stdin.flush()
    target.wait_line(r'ok \d+')
    profd = box.profd([target], '--chunk-seconds', '1',
                      wrapper=['sh', '-c', 'ulimit -n 64; exec "$@"', 'sh'])
    profd.wait_chunks(4)
    profd.interrupt()
    told = lines(profd)
    found = re.match(r'sentry-profd: warning: (\d+) threads of process (\d+) '
                     r'are not sampled: a thread takes two descriptors, and '
                     r'the hard limit is 64; ', told[0] if told else '')
    check(len(told) == 1 and found, profd.stderr)
    check(160 < int(found[1]) < 200 and int(found[2]) == target.pid, told)
    check_sums(profd.stats, arrived='written')
    stats = profd.stats
    check(stats['samples_taken'] > 0 and stats['missed']['not_attached'] >
          stats['samples_taken'], f'{stats}')


def test_target_ends_without_capture(box):
    """The target was profiled, then capture died and cannot be restarted."""
    target = box.napper()
    directory = replaced(box, 'capture', 'here=${0%/*}\necho >> $here/starts\n'
                         '[ -e $here/mark ] && exit 3\n: > $here/mark\n'
                         'exec $here/real')
    directory.chmod(0o777)
    profd = profd_of(box, directory, target, '--chunk-seconds', '1')

    def capture():
        pid = harness.tracer(target.pid)
        return pid if pid != 0 else None
    pid = wait_for(capture, 'it is attached')
    wait_for(lambda: profd.chunks, 'a chunk')
    os.kill(pid, signal.SIGKILL)
    starts = directory / 'starts'
    wait_for(lambda: len(starts.read_text()) >= 4, 'it is started in vain')
    target.end()
    wait_for(lambda: state(target.pid) == '', 'the target has ended')
    profd.finish()
    check_sums(profd.stats, arrived='written')
    check(profd.stats['missed'].get('no_capture', 0) > 0, f'{profd.stats}')


if __name__ == '__main__':
    harness.main(globals())
