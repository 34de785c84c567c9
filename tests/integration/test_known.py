#!/usr/bin/env python3
"""A program of 18 threads whose stacks are known by the thread's name: in functions, in signal
handlers and in the vDSO, and in twelve kinds of waits, none of which fails or ends early.

On aarch64 a function of libc without a frame of its own has its return address in a register, which
a look without a stop does not show: until the thread was stopped there once, the stack ends in that function.
"""

import collections
import platform
import subprocess

import chunk_rules
import harness
import life
from harness import check

harness.filters_kill()

# How often each kind waits, 50 ms at a time.
WAITS = 40

LEVELS = ['leaf', 'level3', 'level2', 'level1']
IN_HANDLER = ['leaf', 'handler']
# The functions of each busy thread, innermost first, of which an outer part is on its stack.
BUSY = {'levels': [*LEVELS, 'levels'], 'variable': ['leaf', 'varies', 'variable'],
        'raises': [*IN_HANDLER, 'raiser', 'raises'], 'interrupted': [*LEVELS, 'interrupted'],
        'clock_reader': ['now_ns', 'clock_reader'], 'caller': ['thread_number', 'caller']}
OWN = {name for chain in BUSY.values() for name in chain} | {'handler', 'waits'}

# Waits that fail with EINTR if a thread wakes or falls asleep between a look and its interrupt: the
# code before them copies the first argument from no register. Capture counts them as unrepaired.
UNKNOWN = ('getevents', 'semaphore') if platform.machine() == 'aarch64' else ()

# Of a thread's time: it is also in the calls between these functions.
MOST = 0.9


def is_outer_part(names, chain):
    return names != [] and chain[-len(names):] == names


def is_right(thread, names):
    """Returns whether a thread may have these functions of the program on its stack."""
    if thread not in BUSY:
        return names in ([], [f'wait_{thread}', 'waits'], ['waits'], ['now_ns', 'waits'])
    if thread == 'interrupted' and 'handler' in names:
        at = names.index('handler') + 1
        return is_outer_part(names[:at], IN_HANDLER) and is_right(thread, names[at:])
    return is_outer_part(names, BUSY[thread])


def test_stacks_and_waits(box):
    target = box.target('known', WAITS, stdin=subprocess.PIPE)
    profd = box.profd([target], '--rate', '101').wait_attached()
    life.begin(target)
    target.wait_line('end')
    profd.interrupt()
    waits = [line.split()[1:] for line in target.stdout.splitlines() if line.startswith('waits')]
    check(len(waits) == 12, f'{waits}')
    failed = 0
    for kind, _, eintr, early in waits:
        check(early == '0' and (eintr == '0' or kind in UNKNOWN),
              f'{kind}: EINTR {eintr}, early {early}')
        failed += int(eintr)
    check(failed <= profd.stats['unrepaired'], f'{failed} calls failed with EINTR')
    wrong, seconds, whole = [], collections.Counter(), collections.Counter()
    for chunk in profd.chunks:
        names_of = {tid: data['name'] for tid, data in chunk['profile']['thread_metadata'].items()}
        for bar in chunk_rules.bars(chunk):
            thread = names_of[bar.thread]
            if thread == 'main':
                continue
            names = [n for n in bar.names if n in OWN or (n or '').startswith('wait_')]
            if not is_right(thread, names):
                wrong.append(f'{thread}: {bar.names} for {bar.seconds:.2f} s')
            seconds[thread] += bar.seconds
            whole[thread] += bar.seconds * (names[:1] == [f'wait_{thread}'] or thread in BUSY)
    check(wrong == [], '\n'.join(wrong[:20]))
    check(len(seconds) == 18, f'{seconds}')
    for thread in seconds:
        check(whole[thread] > MOST * seconds[thread],
              f'{thread}: {whole[thread]} of {seconds[thread]} s')


if __name__ == '__main__':
    harness.main(globals())
