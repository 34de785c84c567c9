#!/usr/bin/python3
"""Runs without a server: their end, the files and the output."""

import os
import re
import signal

import chunk_rules
import harness
from elf import Elf
from harness import BUILD, check
from layout import Layout

TABLE = re.compile(r'^ *SELF +TOTAL (?: *READY)? +WAITING +FUNCTION +MODULE$', re.M)


def chunk_of(profd):
    chunk, = profd.chunks
    return chunk


def names_of(chunk):
    return {f.get('function') for f in chunk['profile']['frames']}


def check_runs_on(target):
    """Checks that the process is not traced, and that its threads go on as
    before."""
    check(target.running(), 'the target has ended')
    for tid in harness.threads(target.pid):
        check(harness.tracer(tid) == 0, f'thread {tid} is still traced')
        check(harness.state(tid) not in ('t', 'T'), f'thread {tid} stands')
    used = harness.cpu_seconds(target.pid)
    harness.wait_for(lambda: harness.cpu_seconds(target.pid) > used,
                     'the target gets on with its work')


def check_table(profd):
    check(TABLE.search(profd.stdout), f'no table: {profd.stdout}')
    check(re.search(r' busy_seventy +shares$', profd.stdout, re.M),
          f'busy_seventy is not in the table: {profd.stdout}')


def test_new_directory_without_dsn_and_output(box):
    cwd = box.make_dir('cwd')
    profd = box.profile([box.target('shares')], work=0.3, output=None, cwd=cwd,
                        table=True)
    directory, = cwd.iterdir()
    check(directory.is_dir(), 'it is no directory')
    check(re.search(rf'\b{directory.name}$', profd.stdout, re.M),
          f'its name is not printed: {profd.stdout}')
    check(len(list(directory.glob('*.envelope'))) == 1, 'the envelope')
    check(sorted(p.suffix for p in directory.iterdir()) == ['.envelope'],
          'something else was left there')
    check_table(profd)


def test_quiet_prints_nothing(box):
    cwd = box.make_dir('cwd')
    profd = box.profile([box.target('shares')], '--release', 'r@1',
                        output=None, cwd=cwd)
    check(profd.stdout == '' and profd.stderr == '',
          f'it says: {profd.stdout}{profd.stderr}')
    check(len(list(cwd.glob('*/*.envelope'))) == 1, 'the envelope')


def test_end_of_the_target(box):
    # The daemon reads all that it needs from the target while the target
    # lives.
    target = box.target('shares', env=harness.environment(
        SENTRY_RELEASE='ended@1'))
    layout = Layout(target.pid)
    profd = box.profd([target]).wait_attached()
    harness.wait_work(target.pid, 0.3)
    # The same as at the end of --duration.
    target.signal(signal.SIGALRM)
    check(target.wait() == 0, 'the target did not end well')
    profd.finish()
    envelope, = profd.envelopes
    found = chunk_rules.problems(envelope, layout)
    check(found == [], f'{found[:5]}')
    check({'busy_seventy', 'busy_thirty', 'sleeper'} <=
          names_of(envelope.chunk), 'names are missing')
    check(envelope.chunk['release'] == 'ended@1', 'the release')
    stats = profd.stats
    check(stats['chunks']['made'] == stats['chunks']['written'] == 1,
          f'{stats["chunks"]}')
    # The last chunk reaches up to the end, except for time that could not be
    # sampled.
    seconds = chunk_rules.thread_seconds(envelope.chunk)[str(target.pid)]
    missed = sum(stats['missed'].values()) / stats['rate_hz']
    check(stats['duration_s'] - 0.1 - missed < seconds < profd.lived_s,
          f'{seconds} s of {stats["duration_s"]}, {missed} s are missed')


def test_target_that_is_killed(box):
    target = box.target('shares')
    profd = box.profd([target]).wait_attached()
    harness.wait_work(target.pid, 0.3)
    target.signal(signal.SIGKILL)
    profd.finish()
    check(target.wait() == -signal.SIGKILL, 'it died of something else')
    check('busy_seventy' in names_of(chunk_of(profd)), 'the last chunk')


def check_signal(box, number):
    target = box.target('shares')
    profd = box.profd([target], table=True).wait_attached()
    harness.wait_work(target.pid, 0.3)
    profd.interrupt(number)
    check_runs_on(target)
    check_table(profd)
    chunk = chunk_of(profd)
    check('busy_seventy' in names_of(chunk), 'the last chunk')
    check(chunk_rules.thread_seconds(chunk)[str(target.pid)] > 0.2,
          'the last chunk is too short')


def test_sigint(box):
    check_signal(box, signal.SIGINT)


def test_sigterm(box):
    check_signal(box, signal.SIGTERM)


def test_duration(box):
    target = box.target('shares')
    profd = box.profd([target], '--duration', '1').finish()
    check_runs_on(target)
    check(profd.stats['duration_s'] >= 1, f'{profd.stats["duration_s"]}')


def test_duration_is_kept(box):
    """--duration is kept, on a machine that has the time."""
    target = box.target('shares')

    def turn():
        profd = box.profd([target], '--duration', '1').finish()
        return [] if profd.stats['duration_s'] < 1.5 else [profd.stats]
    harness.in_turns(turn)


def run_for_release(box, *args, target=None, profd=None):
    """Returns the release in the chunk. target and profd: the SENTRY_RELEASE
    of each."""
    def env(value):
        return harness.environment(**({'SENTRY_RELEASE': value} if value
                                      else {}))
    program = box.target('shares', env=env(target))
    return box.profile([program], *args, env=env(profd))


def test_release(box):
    for args, target, profd, ought in (
            (['--release', 'given@1'], 'target@1', 'own@1', 'given@1'),
            ([], 'target@1', 'own@1', 'target@1'),
            ([], None, 'own@1', 'own@1')):
        run = run_for_release(box, *args, target=target, profd=profd)
        chunk = chunk_of(run)
        check(chunk['release'] == ought, f'{chunk["release"]}, not {ought}')
        check('release' not in run.stderr, f'a warning: {run.stderr}')
        check(chunk['environment'] == 'production', 'the environment')


def test_release_made_of_the_executable(box):
    """There is a warning if a server is to group profiles by such a release.
    """
    run = run_for_release(box)
    check('no release is given' not in run.stderr, f'a warning: {run.stderr}')
    server = box.server()
    run = box.profile([box.target('shares')], '--dsn', server.dsn, env=server.env)
    build_id = Elf((BUILD / 'targets/shares').read_bytes()).build_id.hex()
    ought = f'shares@{build_id[:12]}'
    check(chunk_of(run)['release'] == ought, f'not {ought}')
    check(re.search(rf'warning: process \d+: no release is given: using {ought} ', run.stderr),
          f'no warning: {run.stderr}')


def test_one_warning_for_a_program(box):
    targets = [box.target('shares') for _ in range(3)]
    server = box.server()
    run = box.profile(targets, '--dsn', server.dsn, env=server.env)
    check(len({e.chunk['release'] for e in run.envelopes}) == 1 and
          len(run.envelopes) == 3, 'three chunks of one release')
    check(run.stderr.count('no release is given') == 1,
          f'not one warning: {run.stderr}')


def test_environment_and_platform(box):
    target = box.target('shares')
    profd = box.profile([target], '--platform', 'native',
                        env=harness.environment(SENTRY_ENVIRONMENT='lab'))
    envelope, = profd.envelopes
    check(envelope.chunk['environment'] == 'lab', 'SENTRY_ENVIRONMENT')
    found = chunk_rules.problems(envelope, platform='native')
    check(found == [], f'{found[:5]}')
    profd = box.profile([target], '--environment', 'mine',
                        env=harness.environment(SENTRY_ENVIRONMENT='lab'))
    check(chunk_of(profd)['environment'] == 'mine', '--environment')


OTEL = {'OTEL_SERVICE_NAME': 'shop', 'OTEL_RESOURCE_ATTRIBUTES':
        'service.version=1%2e2,deployment.environment.name=staging'}
WITHOUT_VERSION = {'OTEL_SERVICE_NAME': 'shop'}
SENTRY = {'SENTRY_RELEASE': 'target@1', 'SENTRY_ENVIRONMENT': 'lab'}
OWN = {'SENTRY_RELEASE': 'own@1', 'SENTRY_ENVIRONMENT': 'own'}


def test_names_of_the_target(box):
    """The options take precedence, then the target's environment, then the
    daemon's."""
    for args, target, release, environment in (
            ([], OTEL, 'shop@1.2', 'staging'),
            ([], OTEL | SENTRY, 'target@1', 'lab'),
            ([], WITHOUT_VERSION, 'own@1', 'own'),
            (['--release', 'given@1'], OTEL, 'given@1', 'staging'),
            (['--environment', 'given'], OTEL, 'shop@1.2', 'given')):
        program = box.target('shares', env=harness.environment(**target))
        run = box.profile([program], *args, env=harness.environment(**OWN))
        chunk = chunk_of(run)
        check((chunk['release'], chunk['environment']) ==
              (release, environment), f'{target}: {chunk["release"]} '
              f'{chunk["environment"]}')
        program.end()


def test_max_frames(box):
    target = box.target('shares')
    profd = box.profile([target], '--max-frames', '2')
    stacks = chunk_of(profd)['profile']['stacks']
    check({len(s) for s in stacks} == {2}, f'{stacks}')
    unwind = profd.stats['unwind']
    check(unwind['truncated'] > 0 and unwind['complete'] == 0, f'{unwind}')
    cut = unwind['truncated']
    check(f'{cut} of {cut} stacks have more than 2 frames' in profd.stderr and
          '--max-frames' in profd.stderr, profd.stderr)
    check('--max-frames' not in box.profile([target]).stderr, 'nothing is cut')


def test_target_was_upgraded(box):
    """The running file is read, and not the one that has its name now."""
    copy = box.dir / 'program'
    copy.write_bytes((BUILD / 'targets/shares').read_bytes())
    copy.chmod(0o755)
    target = box.start([copy])
    target.wait_line('ready.*')
    other = box.dir / 'other'
    other.write_bytes((BUILD / 'targets/threads').read_bytes())
    os.rename(other, copy)
    profd = box.profile([target], work=0.3)
    chunk = chunk_of(profd)
    check('busy_seventy' in names_of(chunk), f'{names_of(chunk)}')
    own = [i for i in chunk['debug_meta']['images']
           if i['code_file'] == str(copy)]
    check([i['debug_id'] for i in own] ==
          [Elf((BUILD / 'targets/shares').read_bytes()).debug_id],
          f'{chunk["debug_meta"]["images"]}')
    check(all(f['in_app'] for f in chunk['profile']['frames']
              if f.get('function') == 'busy_seventy'), 'in_app')


if __name__ == '__main__':
    harness.main(globals())
