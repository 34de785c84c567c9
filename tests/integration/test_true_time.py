#!/usr/bin/python3
"""The running time of a profile is the CPU time that the kernel counts, also if threads run for
some microseconds only and hand work to each other (tests/targets/handoff). tests/bench/truth.py
measures more exactly, and with more programs. A run says why threads had no processor.
"""

import os
import pathlib
import re

import bars
import cpu_group
import harness
from harness import check, cpu_seconds

# Processor time for a thousand samples at 997 Hz.
WORK_S = 1.5
RATE_HZ = 997


def running_seconds(profd):
    return sum(following['timestamp'] - s['timestamp']
               for chunk in profd.chunks
               for samples in bars.by_thread(chunk['profile']).values()
               for s, following in zip(samples, samples[1:])
               if 'state' not in s and chunk['profile']['stacks'][s['stack_id']])


def check_told(box, *argv):
    target = box.target(*argv)
    profd = box.profd([target], '--rate', RATE_HZ).wait_attached()
    before = cpu_seconds(target.pid)
    harness.wait_for(lambda: cpu_seconds(target.pid) >= before + WORK_S, f'{WORK_S} s of work')
    profd.interrupt()
    used = cpu_seconds(target.pid) - before
    target.end()
    # The profile begins and ends some ticks before and after the two readings.
    told = running_seconds(profd) / used
    check(0.8 < told < 1.25, f'{told:.2f} of {used:.2f} s told as running')


def test_hand_over_by_a_condition_variable(box):
    check_told(box, 'handoff', 'cond', 1)


def test_hand_over_by_a_pipe(box):
    check_told(box, 'handoff', 'pipe', 1)


def test_pool_with_futures(box):
    check_told(box, 'pool')


def test_short_work_between_sleeps(box):
    check_told(box, 'naps', 8, 50, 1000, 'epoll')


def run_delay(pid):
    """Returns for how many seconds threads of the process have waited for a processor."""
    return sum(int(file.read_text().split()[1]) / 1e9
               for file in pathlib.Path(f'/proc/{pid}/task').glob('*/schedstat'))


def said_of_ready(box, target):
    """What a run says about the ready time of a target."""
    profd = box.profd([target], table=True).wait_attached()
    begin = run_delay(target.pid)
    harness.wait_for(lambda: run_delay(target.pid) > begin + 3, 'ready time')
    profd.interrupt()
    times = profd.stats['times']
    check(times['ready_s'] > 1 and times['running_s'] > 0 and times['without_schedstat'] == 0 and
          not times['compared']['differ'], f'{times}')
    said = re.search(r'threads had to wait for a processor \(ready\) for \d+ % .*', profd.stderr)
    return said and said[0]


def test_busy_processors(box):
    said = said_of_ready(box, box.target('naps', 4 * len(os.sched_getaffinity(0)), 100000, 0))
    check(said and re.search(r'the processors were busy for (9\d|100) %|steal', said), said)


def test_a_throttled_group(box):
    """A quota of 15 % of a core for two computing threads: so little that the group uses it up
    on a busy machine, too."""
    with cpu_group.made(15) as group:
        target = box.start([*cpu_group.inside(group), harness.BUILD / 'targets' / 'naps',
                            2, 100000, 0])
        target.wait_line('ready.*')
        said = said_of_ready(box, target)
        target.end()
    check(said and re.search(r'its control group was throttled for \d+\.\d s', said), said)


if __name__ == '__main__':
    harness.main(globals())
