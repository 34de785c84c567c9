#!/usr/bin/python3
"""--mode cpu: only what a processor was used for; and whose code that is."""

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
