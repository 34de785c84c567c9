#!/usr/bin/python3
"""--mode cpu: only code that used a processor has samples, each in the right
function."""

import collections
import math
import os

import chunk_rules
import harness
from harness import check
from test_control import listening

harness.filters_kill()

# 300 looks at what has a processor.
RATE_HZ, WORK_S = 202, 1.5
RATE = '--rate', str(RATE_HZ)


def split(run):
    """Returns the seconds of each thread in bars with a stack, over all
    chunks."""
    seconds = {}
    for e in run.envelopes:
        for tid, s in chunk_rules.thread_seconds(e.chunk).items():
            seconds[tid] = seconds.get(tid, 0) + s
    return seconds


def names(chunk):
    return {f.get('function') for f in chunk['profile']['frames']}


def test_only_who_runs(box):
    """The sleeping thread has no stack, and thus no sample."""
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
    # In wall mode both threads have samples.
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
    """A thread's last stack does not last while the thread sleeps."""
    target = box.start(['python3', '-c', WAITS])
    target.wait_line('ready')
    run = box.profile([target], '--mode', 'cpu', work=0.5)
    profile = run.envelopes[0].chunk['profile']
    empty = [not profile['stacks'][s['stack_id']] for s in profile['samples']]
    check(any(empty) and not all(empty), f'{len(empty)} samples: {empty[:20]}')
    check(not any(a and b for a, b in zip(empty, empty[1:])),
          'two empty stacks in a row')


def test_idle_is_no_chunk(box):
    """A process that only waits has no chunk, which is not a loss."""
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
    """Returns the seconds for which the threads had a processor, by the
    scheduler."""
    return sum(int(harness.proc_text(p.pid, f'task/{tid}/schedstat').split()[0])
               for p in programs for tid in harness.threads(p.pid)) / 1e9


class Told:
    """The times of these programs in a profile, and their run times meanwhile.
    """

    def __init__(self, box, programs, seconds, *options):
        before = ran(programs)
        profd = box.profd(programs, '--mode', 'cpu',
                          *options).wait_attached().wait_looks()
        begin = ran(programs)
        harness.wait_for(lambda: ran(programs) >= begin + seconds,
                         'processor time')
        self.least = ran(programs) - begin
        chunks = profd.interrupt().chunks
        self.most = ran(programs) - before
        self.by_function = collections.Counter()
        self.samples = 0
        for chunk in chunks:
            stacks = chunk['profile']['stacks']
            self.samples += sum(bool(stacks[s['stack_id']])
                                for s in chunk['profile']['samples'])
            for bar in chunk_rules.bars(chunk):
                if bar.names:
                    self.by_function[bar.names[0]] += bar.seconds
        self.seconds = sum(self.by_function.values())

    def check_sum(self, looks):
        """Checks that both agree within five standard deviations of the number
        of looks that count."""
        luck = 5 / math.sqrt(looks)
        check(self.least * (1 - luck) <= self.seconds <=
              self.most * (1 + luck),
              f'{self.seconds:.2f} s are told of {self.least:.2f} to '
              f'{self.most:.2f} s, by {self.samples} samples')


def test_bars_are_the_processor_time(box):
    """Eight programs share a processor, and each has its own run time."""
    processor = min(os.sched_getaffinity(0))
    targets = [busy_on(box, processor) for _ in range(4)]
    for _ in range(4):
        busy_on(box, processor)
    Told(box, targets, WORK_S, *RATE).check_sum(WORK_S * RATE_HZ)


def test_many_that_work_a_little(box):
    """No thread has more time than it ran, however rarely it is looked at."""
    target = box.start([harness.BUILD / 'targets/naps', '99', '150', '20000'])
    target.wait_line('ready')
    Told(box, [target], 2, '--rate', '11').check_sum(2 * 11)


def test_a_nap_is_no_work(box):
    """Run time between two ticks does not count for the call in which the
    thread then sleeps. A tenth of the time is spent on the way into that call
    and out of it."""
    target = box.start([harness.BUILD / 'targets/naps', '2', '500', '2000'])
    target.wait_line('ready')
    told = Told(box, [target], WORK_S, *RATE)
    told.check_sum(WORK_S * RATE_HZ)
    work = told.by_function['work']
    check(work > 0.87 * told.seconds, f'{told.by_function}')


def test_more_threads_than_processors(box):
    """The stop of one thread gives its processor to another one, which the
    tracer then finds running."""
    target = box.start([harness.BUILD / 'targets/naps', '32', '1000', '5000'])
    target.wait_line('ready')
    told = Told(box, [target], 2 * WORK_S, *RATE, '--cpu-budget', '0')
    # A tolerance of 8 ticks: BALANCE_TICKS of lib/capture/stop.c.
    check(0.85 * told.least < told.seconds < 1.03 * told.most + 10 / RATE_HZ,
          f'{told.seconds:.2f} s are told of {told.least:.2f} to '
          f'{told.most:.2f}')


YIELDS = """
import os
print('ready', flush=True)
while True:
    sum(range(20000))
    os.sched_yield()
"""


def test_where_it_waits_is_not_where_it_runs(box):
    """Each thread loses the processor in sched_yield, and works elsewhere."""
    processor = min(os.sched_getaffinity(0))
    targets = [busy_on(box, processor, YIELDS) for _ in range(4)]
    profd = box.profd(targets, '--mode', 'cpu').wait_attached().wait_looks()
    begin = [ran([t]) for t in targets]
    harness.wait_for(lambda: all(ran([t]) >= b + 0.5 for t, b in
                                 zip(targets, begin)), 'half a second')
    yields = others = 0
    for chunk in profd.interrupt().chunks:
        for bar in chunk_rules.bars(chunk):
            if (bar.names[0] or '').endswith('sched_yield'):
                yields += bar.seconds
            else:
                others += bar.seconds
    # The call takes a microsecond. A waiting thread is nearly always in it.
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


def test_stacks_on_request(box):
    """sentry-profctl stack says why a thread that waits has no stack."""
    waits, runs = box.start(['sleep', '1000']), box.target('unw_o2', 'spin')
    profd, ctl = listening(box, [waits, runs], '--mode', 'cpu')
    profd.wait_attached().wait_looks()
    done = ctl.run('stack', runs.pid)
    check('spin' in done.stdout and 'mode = cpu' in done.stderr, f'{done}')
    done = ctl.run('stack', waits.pid, status=1)
    check(done.stdout == '' and f'process {waits.pid}: mode = cpu in' in done.stderr and
          'none of its threads has run' in done.stderr, f'{done}')


if __name__ == '__main__':
    harness.main(globals())
