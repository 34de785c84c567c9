#!/usr/bin/python3
"""Debian's python3: a large executable, and a thread that sleeps."""

import shutil

import chunk_rules
import harness
from harness import Skip, check
from layout import Layout

PYTHON = '/usr/bin/python3'

PROGRAM = '''
import threading, time

def sleeper():
    while True:
        time.sleep(1000)

def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

thread = threading.Thread(target=sleeper, daemon=True)
thread.start()
print('ready', flush=True)
while True:
    fibonacci(20)
    sorted(str(n) for n in range(1000))
'''


def test_python(box):
    if not shutil.which(PYTHON):
        raise Skip('no python3')
    python = box.start([PYTHON, '-c', PROGRAM])
    python.wait_line('ready')
    # No thread is starting or waits for the interpreter's lock.
    harness.wait_for(lambda: [t for t in harness.threads(python.pid) if
                              harness.in_call(t, 'clock_nanosleep')], 'one that sleeps')
    layout = Layout(python.pid)
    profd = box.profile([python], work=0.5)
    check(python.running(), f'python has ended: {python.stderr}')
    envelope, = profd.envelopes
    found = chunk_rules.problems(envelope, layout)
    check(found == [], f'{found[:5]}')
    stats = profd.stats
    check(stats['unwind']['failed'] == {} and
          stats['unwind']['truncated'] == 0, f'{stats["unwind"]}')

    chunk = envelope.chunk
    main = str(python.pid)
    # /usr/bin/python3 is a link, so "python3" is not the executable's name.
    threads = chunk['profile']['thread_metadata']
    check(threads[main]['name'] == 'main', f'{threads}')
    check(len(threads) == 2, f'{threads}')
    bars = chunk_rules.bars(chunk)
    busy = [b for b in bars if b.thread == main]
    evaluates = sum(b.seconds for b in busy
                    if '_PyEval_EvalFrameDefault' in b.names)
    check(evaluates > 0.95 * sum(b.seconds for b in busy),
          f'{evaluates} s in the interpreter')
    deepest = max(len(b.frames) for b in busy)
    # The interpreter calls itself at most once for each Python call.
    check(deepest < 100, f'a stack of {deepest} frames')
    check({b.names[-1] for b in busy} == {'_start'},
          f'{ {b.names[-1] for b in busy} }')

    # The other thread slept all the time, so its stack did not change.
    asleep = [b for b in bars if b.thread != main]
    check(len({tuple(b.names) for b in asleep}) == 1,
          f'the sleeper was seen in { {tuple(b.names) for b in asleep} }')
    slept, whole = sum(b.seconds for b in asleep), stats['duration_s']
    missed = sum(stats['missed'].values()) / stats['rate_hz']
    check(whole - missed - 0.2 < slept < profd.lived_s,
          f'{slept} s of sleep in {whole} s, {missed} s are missed')
    check('_PyEval_EvalFrameDefault' in asleep[0].names,
          f'{asleep[0].names}')


if __name__ == '__main__':
    harness.main(globals())
