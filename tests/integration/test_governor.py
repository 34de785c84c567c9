#!/usr/bin/python3
"""The CPU budget: an expensive target is sampled at a lower rate, and the
times in its profile stay right.

Runs alone: it measures the cost of sampling, which depends on the load.
"""

import re
import signal

import chunk_rules
import control
import harness
import stranger
from account import check_sums
from harness import check, wait_for
from test_shares import luck, share_problems

LOWERED = r'process {} is sampled at (\d+) Hz'
LINE = r'sentry-profd: warning: CPU budget 1 %: \d of 2 processes are sampled at only ' \
    r'\d+ to \d+ Hz \(--cpu-budget\)\n'


def test_lowered(box):
    """A thousand samples a second of a running program cost more than 1 % of a
    processor."""
    busy = box.target('shares')
    idle = box.target('cap_threads', stdin=-1)
    profd = box.profd([busy, idle], '--rate', '1000', '--cpu-budget', '1',
                      '--chunk-seconds', '1', '--debug')
    lowered = wait_for(lambda: re.search(LOWERED.format(busy.pid),
                                         profd.stderr), 'a lower rate')
    profd.wait_chunks(5)
    profd.signal(signal.SIGINT)
    profd.finish()
    check(len(re.findall(LINE, profd.stderr)) >= 1, profd.stderr)
    figures = {t['pid']: t for t in profd.stats['targets']}
    governor = figures[busy.pid]['governor']
    check(governor['lowest_rate_hz'] <= int(lowered[1]) < 1000 and
          governor['lowered_s'] > 0, f'{governor}')
    # The target that costs more is lowered more; the other one only on a busy machine.
    other = figures[idle.pid]['governor']
    check(other['lowest_rate_hz'] > governor['lowest_rate_hz'],
          f'{other}, and the busy one {governor}')
    check_sums(profd.stats, arrived='written')
    check(figures[busy.pid]['ticks'] < figures[idle.pid]['ticks'],
          'no tick was left out')
    # Every second of the run is in the chunks, at any rate. Time that could
    # not be sampled is reported, and is in no chunk.
    tid = str(busy.pid)
    seconds = sum(chunk_rules.thread_seconds(c).get(tid, 0)
                  for c in profd.chunks)
    missed = sum(figures[busy.pid]['missed'].values()) / \
        governor['lowest_rate_hz']
    whole = figures[busy.pid]['duration_s']
    check(whole - missed - 0.25 < seconds < profd.lived_s,
          f'{seconds:.2f} s of {whole:.2f} s, {missed:.2f} s are missed')
    # The shares of the functions are the same.
    found = share_problems(profd.chunks, tid, luck(profd.chunks, tid))
    check(found == [], f'{found}')


def test_other_users_see_the_rate_of_the_configuration(box):
    """The lowered rate says how busy the process is."""
    stranger.need_root()
    busy = box.target('shares')
    path = box.make_dir('run') / 'sub' / 'profd.sock'
    box.profd([busy], '--socket', path, '--rate', '1000', '--cpu-budget', '1')
    wait_for(lambda: control.listens(path), 'a socket')
    ctl = control.Control(box, path)
    wait_for(lambda: ctl.target(busy.pid)['rate_hz'] < 1000, 'a lower rate')
    check(ctl.target(busy.pid, uid=stranger.UID)['rate_hz'] == 1000, 'the rate')


LOWEST_HZ = 11


def tick_lengths(chunk):
    """Returns the distances between ticks, in periods of the lowest rate; the
    last one is cut off."""
    times = sorted({s['timestamp'] for s in chunk['profile']['samples']})
    return [LOWEST_HZ * (b - a) for a, b in zip(times[:-1], times[1:-1])]


def is_even(chunk):
    """Skipped ticks are allowed if the daemon did not run in between."""
    ticks = tick_lengths(chunk)
    even = sum(abs(n - max(1, round(n))) < 0.1 for n in ticks)
    return len(ticks) > 3 and even > 0.8 * len(ticks)


def test_lowest(box):
    """The cost exceeds the budget at any rate: the lowest rate is used, and
    one line reports it."""
    busy = [box.start([harness.BUILD / 'bench/target', 'busy=24'])
            for _ in range(2)]
    for target in busy:
        target.wait_line('ready.*')
    profd = box.profd(busy, '--rate', '1000', '--cpu-budget', '1',
                      '--chunk-seconds', '1')
    wait_for(lambda: 'all targets are at the lowest rate' in profd.stderr,
             'it gives up')
    profd.wait_chunks(2)
    chunks = len(profd.chunks)

    def turn():
        profd.wait_chunks(2)
        return [] if any(map(is_even, profd.chunks[chunks:])) else \
            [tick_lengths(c) for c in profd.chunks[chunks:]]
    # On a busy machine ticks are late.
    harness.in_turns(turn)
    late = profd.interrupt().chunks[chunks:]
    check(profd.stderr.count('all targets are at the lowest rate') == 1, profd.stderr)
    for figures in profd.stats['targets']:
        check(figures['governor']['lowest_rate_hz'] == LOWEST_HZ and
              figures['governor']['lowered_s'] > 1, f'{figures["governor"]}')
    for chunk in late:
        found = chunk_rules.time_problems(chunk['profile'], LOWEST_HZ)
        check(found == [], f'{found}')


def test_what_no_rate_saves(box):
    """A program that makes threads all the time: each birth is a stop, at any
    rate, which a line reports."""
    # On a fast machine one such program costs less than 1 % at a lower rate.
    births = [box.target('short_threads') for _ in range(4)]
    profd = box.profd(births, '--cpu-budget', '1', '--chunk-seconds', '1')
    wait_for(lambda: 'cost the same at any rate' in
             profd.stderr, 'it gives up')
    profd.wait_chunks(3 * len(births))
    profd.interrupt()
    stats = profd.stats
    check(stats['event_stops'] > stats['stops'], f'{stats}')
    check(stats['governor']['lowest_rate_hz'] == LOWEST_HZ and
          0 < stats['governor']['exceeded_s'] <=
          stats['governor']['lowered_s'], f'{stats["governor"]}')


NOT_SAMPLED = "not sampled: its user's part of the CPU budget is used up"
PROGRAMS = 6


def test_a_user_does_not_lower_the_rate_of_others(box):
    """A user's programs exceed the budget at any rate: they are not sampled, and
    root's program keeps its rate. When they need less, they are sampled again."""
    stranger.need_root()
    own = box.target('shares')
    # Few of these threads run at a time, but at each tick all of them have run.
    theirs = [stranger.target(box, 'naps', 300, 5, 40000) for _ in range(PROGRAMS)]
    path = box.make_dir('run') / 'sub' / 'profd.sock'
    profd = box.profd([own], '--socket', path, '--cpu-budget', '5', '--chunk-seconds', '1')
    wait_for(lambda: control.listens(path), 'a socket')
    ctl = control.Control(box, path)

    def as_user(*args):
        return box.start([ctl.exe, *args], env=harness.environment(SENTRY_PROFD_SOCKET=str(path)),
                         **stranger.options())
    out = stranger.make_dir(box, 'out') / 'recorded.json'
    record = as_user('record', theirs[0].pid, '-o', out, '--to', 'speedscope')
    # The status is 1 for those that wait for room in the user's part.
    for attach in [as_user('attach', program.pid) for program in theirs[1:]]:
        attach.wait()

    def is_above():
        status = ctl.status()
        found = {t['pid']: t for t in status['targets']}
        check(found[own.pid]['rate_hz'] == 101, f'{status}')
        paused = [t for t in found.values() if t['rate_hz'] == 0]
        check(all(t['last_error'] == NOT_SAMPLED for t in paused), f'{paused}')
        return status['daemon']['lowered']['not_sampled'] == len(paused) > 0 and \
            sum(t['missed'] for t in paused) > 0 and record.stderr
    told = wait_for(is_above, 'programs that are not sampled')
    check(f"process {theirs[0].pid} is not " in told and
          "its user's part of the CPU budget is used up" in told, told)
    for program in theirs:
        program.signal(signal.SIGSTOP)
    wait_for(lambda: f'process {theirs[0].pid} is sampled again\n' in record.stderr,
             'a recording that goes on')
    record.signal(signal.SIGINT)
    check(record.wait() == 0, record.stderr)
    profd.interrupt()
    stats = {t['pid']: t for t in profd.stats['targets']}
    check(stats[own.pid]['governor']['lowered_s'] == 0 and
          'budget' not in stats[own.pid]['missed'], f'{stats[own.pid]}')
    check(profd.stats['missed']['budget'] > 0, f'{profd.stats["missed"]}')
    for t in [*stats.values(), profd.stats]:
        check(t['samples_expected'] == t['samples_taken'] + sum(t['missed'].values()), f'{t}')


def tell(target, line):
    target.process.stdin.write(line)
    target.process.stdin.flush()


def test_recovers(box):
    """A tick alone takes up to 30 us on a slow machine, which is 3 % at this
    rate."""
    target = box.target('cap_threads', stdin=-1)
    tell(target, b'busy 64\n')
    target.wait_line(r'ok \d+')
    profd = box.profd([target], '--rate', '1000', '--cpu-budget', '6',
                      '--chunk-seconds', '1', '--debug')
    wait_for(lambda: re.search(r'is sampled at \d+ Hz\n', profd.stderr),
             'a lower rate')
    tell(target, b'join\n')
    wait_for(lambda: 'is sampled at 1000 Hz\n' in profd.stderr,
             'the full rate')
    profd.interrupt()
    governor = profd.stats['governor']
    check(governor['lowest_rate_hz'] < 1000 and governor['lowered_s'] > 0,
          f'{governor}')


def test_values_that_are_none(box):
    target = box.start(['sleep', 'infinity'])
    for value in ('', '-1', '10001', '1.5', '5%', 'none'):
        profd = box.profd([target], '--cpu-budget', value)
        profd.finish(status=2)
        check('--cpu-budget' in profd.stderr and
              harness.tracer(target.pid) == 0, f'{value}: {profd.stderr}')


def test_no_limit(box):
    busy = box.target('shares')
    profd = box.profd([busy], '--rate', '1000', '--cpu-budget', '0',
                      '--chunk-seconds', '1')
    profd.wait_chunks(1)
    profd.interrupt()
    check(profd.stats['governor'] == {
        'cpu_budget_percent': 0, 'lowest_rate_hz': 1000, 'lowered_s': 0.0,
        'exceeded_s': 0.0, 'delayed_processes': 0},
          f'{profd.stats["governor"]}')
    check(profd.stats['scheduler'] in ('fifo', 'nice', 'normal'),
          f'{profd.stats["scheduler"]}')


if __name__ == '__main__':
    harness.main(globals())
