#!/usr/bin/python3
"""redis-server, as Debian packages it, under redis-benchmark.

Runs alone: it compares how fast a server is.
"""

import collections
import os
import re
import shutil
import signal
import subprocess
import time

import chunk_rules
import harness
from account import check_sums
from harness import Skip, check
from layout import Layout

SORT_WORDS = 2000
# A function is compared if one of the profilers sees more than this.
HOT_PERCENT = 5
AGREE_POINTS = 3
# Below this share of a processor the two profilers measure different things.
BUSY = 0.7


def start_redis(box, apart=False):
    """Starts a server and clients that keep it busy.

    apart: the server has a processor that its clients do not use.
    """
    # Debian's redis-tools has the same executable under another name. Its
    # behaviour depends on the name.
    path = shutil.which('redis-server') or shutil.which('redis-check-rdb')
    if not path or not shutil.which('redis-benchmark'):
        raise Skip('no redis (Debian: redis-tools)')
    port = harness.free_port()
    cpus = sorted(os.sched_getaffinity(0))
    if apart and len(cpus) < 2:
        raise Skip('only one processor')
    redis = box.start(['redis-server', '--port', port, '--bind', '127.0.0.1',
                       '--save', '', '--dir', box.dir], executable=path)
    if apart:
        os.sched_setaffinity(redis.pid, cpus[:1])
    cli = ['redis-cli', '-p', str(port)]
    harness.wait_for(lambda: subprocess.run(
        [*cli, 'ping'], capture_output=True).stdout == b'PONG\n',
        'redis answers')
    benchmark = ['redis-benchmark', '-p', port, '-q']
    box.start([*benchmark, '-n', SORT_WORDS, '-r', 10 ** 8, 'rpush', 'words',
               'word:__rand_int__']).wait()
    # A load with much time in redis itself, some in libc, and some in system
    # calls.
    for load in (['-c', 2, 'sort', 'words', 'alpha', 'limit', 0, 10],
                 ['-c', 20, '-P', 16, '-r', 10000, '-t', 'set,get']):
        client = box.start([*benchmark, '-l', '-n', 10 ** 6, *load])
        if apart:
            os.sched_setaffinity(client.pid, cpus[1:])
    used = harness.cpu_seconds(redis.pid)
    harness.wait_for(lambda: harness.cpu_seconds(redis.pid) > used + 0.1,
                     'redis is busy')
    return redis


def check_stats(profd, made):
    stats = profd.stats
    check_sums(stats, arrived='written')
    # A busy machine makes samples late or impossible, and when redis forks to
    # save, its memory may be slow to read.
    check(set(stats['missed']) <= {'sampler_late', 'not_stopped',
                                   'memory_slow'},
          f'{stats["missed"]}')
    late = stats['missed'].get('sampler_late', 0) + 2
    check(stats['rate_hz'] * stats['duration_s'] - late <= stats['ticks'] <=
          stats['rate_hz'] * profd.lived_s,
          f'{stats["ticks"]} ticks in {stats["duration_s"]} s, {late} late')
    check(stats['unwind']['failed'] == {} and
          stats['unwind']['truncated'] == 0 and
          stats['unwind']['complete'] > 0, f'{stats["unwind"]}')
    check(stats['chunks'] == dict(made=made, sent=made, written=made,
                                  unwritten=0, spooled=0, idle=0, discarded={}),
          f'{stats["chunks"]}')
    check(0 < stats['stop_us']['p50'] <= stats['stop_us']['p99'] <=
          stats['stop_us']['max'], f'{stats["stop_us"]}')
    for key in ('cpu_seconds', 'rss_peak_bytes'):
        check(set(stats[key]) == {'broker', 'capture', 'unwind', 'ship'},
              f'{stats[key]}')
        check(all(v > 0 for k, v in stats[key].items()
                  if key == 'rss_peak_bytes' or k == 'capture'),
              f'{stats[key]}')


def test_chunks_reach_the_server(box):
    server = box.server()
    redis = start_redis(box)
    layout = Layout(redis.pid)
    dsn = server.dsn.replace('localhost', '127.0.0.1')
    profd = box.profd([redis], '--chunk-seconds', '5', '--dsn', dsn,
                      env=server.env)
    profd.wait_chunks()
    profd.wait_looks()
    profd.interrupt()
    check(redis.running(), 'redis has ended')
    server.check_requests()
    envelopes = server.envelopes
    check(len(envelopes) >= 2, f'{len(envelopes)} chunks')
    for e in envelopes:
        found = chunk_rules.problems(e, layout, sent=True)
        check(found == [], f'{found[:5]}')
        check('redis' in e.chunk['release'], f'{e.chunk["release"]}')
        # The name under which it was started.
        name = e.chunk['profile']['thread_metadata'][str(redis.pid)]['name']
        check(name == 'main', f'the main thread is "{name}"')
    chunks = [e.chunk for e in envelopes]
    found = chunk_rules.stream_problems(chunks)
    check(found == [], f'{found}')
    check(all(ours.is_sent_as(theirs)
              for ours, theirs in zip(profd.envelopes, envelopes, strict=True)),
          'the files differ')
    check_stats(profd, made=len(envelopes))
    whole = profd.stats['duration_s']
    missed = sum(profd.stats['missed'].values()) / profd.stats['rate_hz']
    for tid in harness.threads(redis.pid):
        seconds = sum(chunk_rules.thread_seconds(c)[str(tid)] for c in chunks)
        check(whole - missed - 0.2 < seconds < profd.lived_s,
              f'thread {tid} has {seconds:.2f} s of {whole:.2f}')
    for chunk in chunks:
        bars = [b for b in chunk_rules.bars(chunk)
                if b.thread == str(redis.pid)]
        # The outermost frame of the main thread.
        check({b.names[-1] for b in bars} <= {'_start'} or
              {b.names[-1] for b in bars} == {None},
              f'{collections.Counter(b.names[-1] for b in bars)}')


def function_at(elf, path, vaddr):
    """Returns what both profilers call a function: its file, its start, a
    name."""
    start, name = elf.function_at(vaddr)
    return (path, start, name or path.rpartition('/')[2])


def percent(counts):
    whole = sum(counts.values())
    return {f: 100 * n / whole for f, n in counts.items()}


def perf_self(layout, data):
    """Returns {function: samples}, by the innermost function in user code. Samples in the
    kernel count for the function that made the system call."""
    text = subprocess.run(['perf', 'script', '-i', str(data), '-F',
                           'tid,ip,dso'], check=True, capture_output=True,
                          text=True).stdout
    elves = {m.path: m.elf for m in layout.mappings}
    counts = collections.Counter()
    for sample in re.split(r'\n\s*\n', text):
        head, *lines = sample.split('\n')
        if head.split()[-1:] != [str(layout.pid)]:
            continue
        # Innermost first, each by its offset in its file. The kernel's
        # functions are in a file that the target has not mapped.
        for line in lines:
            found = re.fullmatch(r'\s*([0-9a-f]+) \((.*)\)', line)
            if found and found[2] in elves:
                elf = elves[found[2]]
                vaddr = elf.vaddr_of(int(found[1], 16))
                counts[function_at(elf, found[2], vaddr)] += 1
                break
    return counts


def our_self(layout, chunks):
    """Returns {function: seconds}."""
    counts = collections.Counter()
    for chunk in chunks:
        for bar in chunk_rules.bars(chunk):
            address = int(bar.frames[0]['instruction_addr'], 16)
            m = layout.at(address)
            if bar.thread == str(layout.pid) and m:
                counts[function_at(m.elf, m.path,
                                   address - m.bias)] += bar.seconds
    return counts


def self_percent(box, redis, layout, data):
    """Returns the percentages by perf and by sentry-profd, {function:
    percent}, for the same seconds."""
    perf = box.start(['perf', 'record', '-q', '-e', 'cpu-clock', '-F', '2000',
                      '-g', '-p', redis.pid, '-o', data])
    harness.wait_for(lambda: not perf.running() or
                     data.exists() and data.stat().st_size > 0,
                     'perf records')
    if not perf.running():
        raise Skip(f'perf does not run: {perf.stderr.strip()[:200]}')
    # At this rate a difference of three points is not due to chance. The
    # profiler runs on redis's processor: on a virtual machine an interrupt
    # from another one arrives up to 0.1 ms late, and redis is in its next
    # read() by then.
    cpu = min(os.sched_getaffinity(redis.pid))
    profd = box.profile([redis], '--rate', '1000', work=4,
                        wrapper=['taskset', '--cpu-list', cpu])
    perf.signal(signal.SIGINT)
    perf.wait()
    theirs, ours = perf_self(layout, data), our_self(layout, profd.chunks)
    check(sum(theirs.values()) > 1000, f'perf has {sum(theirs.values())}')
    # perf does not count waiting, which the chunk does not distinguish from
    # work.
    for counts in theirs, ours:
        for f in [f for f in counts if f[2].startswith('epoll_')]:
            del counts[f]
    return percent(theirs), percent(ours)


def test_agrees_with_perf(box):
    """The functions with the most self time, in the same seconds."""
    if not shutil.which('perf'):
        raise Skip('no perf')
    # A client that is woken takes the processor of its server, which is in
    # write(). That counts as wall time, but not for perf.
    redis = start_redis(box, apart=True)
    layout = Layout(redis.pid)
    # On a busy machine a function can differ by chance, but not twice. A wrong
    # value stays wrong.
    for attempt in ('first', 'second'):
        used = harness.cpu_seconds(redis.pid)
        start = time.monotonic()
        theirs, ours = self_percent(box, redis, layout, box.dir / attempt)
        used = harness.cpu_seconds(redis.pid) - used
        busy = used / (time.monotonic() - start)
        hot = sorted(f for f in theirs.keys() | ours.keys()
                     if max(theirs.get(f, 0), ours.get(f, 0)) > HOT_PERCENT)
        rows = [f'{f[2]}: perf {theirs.get(f, 0):.1f} %, ours '
                f'{ours.get(f, 0):.1f} %' for f in hot]
        print(f'redis has {100 * busy:.0f} % of a processor',
              *rows, sep='\n')
        check(len(hot) >= 3, f'too little to compare: {rows}')
        apart = [row for f, row in zip(hot, rows)
                 if abs(theirs.get(f, 0) - ours.get(f, 0)) > AGREE_POINTS]
        if not apart:
            return
    # perf sees threads that have a processor, sentry-profd those that want
    # one.
    if busy < BUSY:
        raise Skip(f'redis had {100 * busy:.0f} % of a processor only')
    check(False, f'they differ: {apart}')


if __name__ == '__main__':
    harness.main(globals())
