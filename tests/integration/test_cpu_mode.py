#!/usr/bin/python3
"""--mode cpu: only what a processor was used for; and whose code that is."""

import os

import chunk_rules
import harness
from harness import check


def split(run):
    """Seconds of each thread in bars with a stack, over all chunks."""
    seconds = {}
    for e in run.envelopes:
        for tid, s in chunk_rules.thread_seconds(e.chunk).items():
            seconds[tid] = seconds.get(tid, 0) + s
    return seconds


def names(chunk):
    return {f.get('function') for f in chunk['profile']['frames']}


def test_only_who_runs(box):
    """The sleeper has no stack, and thus no sample."""
    target = box.target('shares')
    tids = harness.threads(target.pid)
    run = box.profile([target], '--mode', 'cpu', work=0.5)
    chunk = run.envelopes[0].chunk
    check('busy_seventy' in names(chunk) and 'sleeper' not in names(chunk),
          f'{names(chunk)}')
    seconds = split(run)
    check(set(seconds) == {str(target.pid)} and len(tids) == 2, f'{seconds}')
    found = chunk_rules.problems(run.envelopes[0])
    check(found == [], f'{found[:5]}')
    # The same with waits: both are there.
    run = box.profile([target], '--mode', 'wall', work=0.2)
    check('sleeper' in names(run.envelopes[0].chunk) and
          len(split(run)) == 2, '--mode wall')


WAITS = """
import time
print('ready', flush=True)
while True:
    sum(range(300000))
    time.sleep(0.03)
"""


def test_sleep_is_an_empty_stack(box):
    """What a thread did last does not go on while it sleeps."""
    target = box.start(['python3', '-c', WAITS])
    target.wait_line('ready')
    run = box.profile([target], '--mode', 'cpu', work=0.5)
    profile = run.envelopes[0].chunk['profile']
    empty = [not profile['stacks'][s['stack_id']] for s in profile['samples']]
    check(any(empty) and not all(empty), f'{len(empty)} samples: {empty[:20]}')
    check(not any(a and b for a, b in zip(empty, empty[1:])),
          'two empty stacks in a row')


def test_idle_is_no_chunk(box):
    """A process that only waits has no chunk, and that is no loss."""
    target = box.start(['sleep', '1000'])
    harness.wait_for(lambda: harness.blocked(target.pid), 'sleep to sleep')
    run = box.profile([target], '--mode', 'cpu', '--chunk-seconds', '1')
    chunks = run.stats['chunks']
    check(run.envelopes == [] and chunks['made'] == 0 and chunks['idle'] > 0
          and chunks['discarded'] == {}, f'{chunks}')


BUSY = """
print('ready', flush=True)
while True:
    sum(range(20000))
"""


def busy_on(box, processor, text=BUSY):
    program = box.start(['python3', '-c', text])
    program.wait_line('ready')
    os.sched_setaffinity(program.pid, {processor})
    return program


def ran(programs):
    """Seconds for which each had a processor, to the nanosecond."""
    return [int(harness.proc_text(p.pid, 'schedstat').split()[0]) / 1e9
            for p in programs]


def test_bars_are_the_processor_time(box):
    """Where eight share a processor each has what it ran, not its ticks."""
    processor = min(os.sched_getaffinity(0))
    targets = [busy_on(box, processor) for _ in range(4)]
    for _ in range(4):
        busy_on(box, processor)
    before = ran(targets)
    profd = box.profd(targets, '--mode', 'cpu').wait_attached().wait_looks()
    begin = ran(targets)
    harness.wait_for(lambda: all(b >= a + 0.5 for a, b in
                                 zip(begin, ran(targets))), 'half a second')
    end = ran(targets)
    chunks = profd.interrupt().chunks
    after = ran(targets)
    for i, t in enumerate(targets):
        told = sum(chunk_rules.thread_seconds(c).get(str(t.pid), 0)
                   for c in chunks)
        # Some looks are told on trust: lib/capture/account.c
        check(0.9 * (end[i] - begin[i]) <= told + 0.05 and
              told <= after[i] - before[i] + 0.1,
              f'{told} of {end[i] - begin[i]} to {after[i] - before[i]} s')


YIELDS = """
import os
print('ready', flush=True)
while True:
    sum(range(20000))
    os.sched_yield()
"""


def test_where_it_waits_is_not_where_it_runs(box):
    """Each loses the processor in sched_yield, and works elsewhere."""
    processor = min(os.sched_getaffinity(0))
    targets = [busy_on(box, processor, YIELDS) for _ in range(4)]
    profd = box.profd(targets, '--mode', 'cpu').wait_attached().wait_looks()
    begin = ran(targets)
    harness.wait_for(lambda: all(b >= a + 0.5 for a, b in
                                 zip(begin, ran(targets))), 'half a second')
    yields = others = 0
    for chunk in profd.interrupt().chunks:
        for bar in chunk_rules.bars(chunk):
            if (bar.names[0] or '').endswith('sched_yield'):
                yields += bar.seconds
            else:
                others += bar.seconds
    # A call of a microsecond; who waits nearly always stands in it.
    check(0 < yields + others and 2 * yields < others,
          f'{yields} s in sched_yield, {others} s elsewhere')


def in_app(run, function):
    return {f['in_app'] for e in run.envelopes
            for f in e.chunk['profile']['frames']
            if f.get('function') == function}


def test_in_app(box):
    target = box.target('shares')
    run = box.profile([target], '--in-app-exclude', '/opt/** shar?s',
                      work=0.2)
    check(in_app(run, 'busy_seventy') == {False}, '--in-app-exclude')
    run = box.profile([target], '--in-app-exclude', '**', '--in-app-include',
                      '**/targets/*', work=0.2)
    check(in_app(run, 'busy_seventy') == {True}, '--in-app-include')


if __name__ == '__main__':
    harness.main(globals())
