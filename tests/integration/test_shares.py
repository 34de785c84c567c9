#!/usr/bin/python3
"""A program with known shares, seen through the chunks as the server sees it.

70 % of its main thread's time is in busy_seventy(), 30 % in busy_thirty(); its
other thread, "sleeper", sleeps.

Runs alone: it measures shares of time.
"""

import collections
import math
import re

import chunk_rules
import harness
from harness import check
from layout import Layout


def self_shares(chunks, tid):
    """Returns the percentages of a thread's time by its innermost function."""
    seconds = collections.Counter()
    for chunk in chunks:
        for bar in chunk_rules.bars(chunk):
            if bar.thread == tid:
                seconds[bar.names[0]] += bar.seconds
    whole = sum(seconds.values())
    return {name: 100 * s / whole for name, s in seconds.items()}


def seconds_of(chunks, tid):
    return sum(chunk_rules.thread_seconds(c)[tid] for c in chunks)


def share_problems(chunks, tid, tolerance):
    shares = self_shares(chunks, tid)
    return [f'{name} has {shares.get(name, 0):.1f} %: {shares}'
            for name, share in (('busy_seventy', 70), ('busy_thirty', 30))
            if abs(shares.get(name, 0) - share) > tolerance]


def luck(chunks, tid):
    """Returns five standard deviations of a share, in percent.

    The deviation follows from the number n of independent looks at the thread, which is
    estimated: for n looks of equal weight, the square of the sum of the lengths of runs of
    the same function is n / 4.53 times the sum of the squares. n is less than the number
    of samples if many ticks saw the same moment, since the thread waited for a processor,
    or if some looks stand for more time than others.
    """
    runs = []
    for chunk in chunks:
        last = None
        for bar in chunk_rules.bars(chunk):
            if bar.thread != tid:
                continue
            if bar.names[0] != last:
                runs.append(0)
            runs[-1] += bar.seconds
            last = bar.names[0]
    looks = 4.53 * sum(runs) ** 2 / sum(r * r for r in runs)
    return 5 * 100 * math.sqrt(0.7 * 0.3 / looks)


def check_sleeper(chunks, tid):
    """Checks that all of the sleeper's time is in one stack, its own."""
    stacks = {tuple(bar.names) for c in chunks for bar in chunk_rules.bars(c)
              if bar.thread == tid}
    check(len(stacks) == 1, f'the sleeper was seen in {stacks}')
    stack, = stacks
    check('sleeper_thread' in stack and
          stack.index('sleeper') + 1 == stack.index('sleeper_thread'),
          f'the stack of the sleeper: {stack}')


# Two ticks at the default rate: the start and the end of the run are each
# known to within one tick.
SLACK_S = 2 / 101
def check_no_time_is_lost(profd, pid, chunks):
    """Checks that the chunks have the length of the run, for each thread."""
    stats = next(t for t in profd.stats['targets'] if t['pid'] == pid)
    tids = {str(t) for t in harness.threads(pid)}
    check(len(tids) == 2, 'the target has two threads')
    for tid in tids:
        # Time that could not be sampled is reported, and is in no chunk.
        missed = sum(stats['missed'].values()) / stats['rate_hz']
        seconds = seconds_of(chunks, tid)
        check(stats['duration_s'] - missed - SLACK_S <= seconds <=
              profd.lived_s,
              f'thread {tid} has {seconds:.3f} s of '
              f'{stats["duration_s"]:.3f} (missed: {stats["missed"]})')


# At the default rate 909 samples have a standard deviation of 1.5 points.
# 6,000 samples have 0.6, so a difference of 3 points is not due to chance. On
# a busy machine there may be fewer looks, but not in every attempt.
def test_shares_within_three_points(box):
    target = box.target('shares')
    layout = Layout(target.pid)
    for _ in range(3):
        profd = box.profile([target], '--rate', '1000', table=True, work=5)
        for envelope in profd.envelopes:
            found = chunk_rules.problems(envelope, layout, rate_hz=1000)
            check(found == [], f'{found[:5]}')
        chunks = profd.chunks
        check(chunk_rules.thread_ids(chunks[0], 'main') == [str(target.pid)],
              'the main thread is called main')
        sleeper, = chunk_rules.thread_ids(chunks[0], 'sleeper')
        check_sleeper(chunks, sleeper)
        check_no_time_is_lost(profd, target.pid, chunks)
        # The sleeper has not run, so its stack was read once.
        check(profd.stats['captured'] < profd.stats['ticks'] +
              0.1 * profd.stats['repeated'],
              f'the sleeper was not left alone: {profd.stats}')
        wrong = share_problems(chunks, str(target.pid), 3)
        if not wrong:
            break
    check(wrong == [], f'{wrong}')
    # The table has the same shares: its first row is the function with the
    # most time.
    rows = re.findall(r'^ +[\d.]+ s +([\d.]+)%.* (\S+) +shares$',
                      profd.stdout, re.M)
    check(rows[0][1] == 'busy_seventy' and rows[1][1] == 'busy_thirty' and
          abs(float(rows[0][0]) - 70) < 5 and
          abs(float(rows[1][0]) - 30) < 5, f'{profd.stdout}')


def test_two_processes_and_many_chunks(box):
    targets = [box.target('shares') for _ in range(2)]
    layouts = {t.pid: Layout(t.pid) for t in targets}
    profd = box.profd(targets, '--chunk-seconds', '2')
    # Chunks of both processes, and a last one.
    profd.wait_chunks(8)
    profd.wait_looks()
    profd.interrupt()
    streams = collections.defaultdict(list)
    for envelope in profd.envelopes:
        streams[envelope.chunk['profiler_id']].append(envelope)
    check(len(streams) == 2, f'{len(streams)} profiler_ids for 2 processes')
    stats = profd.stats
    check(stats['chunks']['made'] == stats['chunks']['written'] ==
          len(profd.envelopes), f'{stats["chunks"]}')
    for target in targets:
        tid = str(target.pid)
        own, = [s for s in streams.values()
                if tid in s[0].chunk['profile']['thread_metadata']]
        chunks = [e.chunk for e in own]
        check(len(chunks) >= 4, f'{len(chunks)} chunks')
        for envelope in own:
            found = chunk_rules.problems(envelope, layouts[target.pid])
            check(found == [], f'{found[:5]}')
        found = chunk_rules.stream_problems(chunks)
        check(found == [], f'{found[:5]}')
        wrong = share_problems(chunks, tid, luck(chunks, tid))
        check(wrong == [], f'{wrong}')
        sleeper, = chunk_rules.thread_ids(chunks[0], 'sleeper')
        check_sleeper(chunks, sleeper)
        check_no_time_is_lost(profd, target.pid, chunks)
    for key in ('samples_expected', 'samples_taken', 'captured', 'repeated',
                'filled', 'stops', 'event_stops'):
        check(stats[key] == sum(t[key] for t in stats['targets']),
              f'{key} is not the sum over the targets')


if __name__ == '__main__':
    harness.main(globals())
