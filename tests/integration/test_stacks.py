#!/usr/bin/python3
"""Programs that know their own stacks, built in several ways, all at the same
time."""

import collections
import shutil
import subprocess

import chunk_rules
import harness
from harness import BUILD, Skip, check
from layout import Layout

harness.filters_kill()

PROGRAMS = ('unw_fp', 'unw_nopie', 'unw_o0', 'unw_o2', 'unw_o3', 'unw_static')
# Ways to wait at the innermost function: in a system call, in a signal handler
# (of a fault, of raise()), below a call that does not return, in a callback of
# libc.
MODES = ('nanosleep', 'read', 'poll', 'futex', 'signal', 'raise', 'noreturn',
         'qsort')


# Processor time from "ready" to the place of the wait: it needs far less.
TO_THE_DEPTH_S = 0.05


def check_stacks(box, programs):
    """Checks the stacks of programs: {Program: expected names, innermost
    first}."""
    layouts = {p.pid: Layout(p.pid) for p in programs}
    profd = box.profile(programs)
    chunks = {}
    for envelope in profd.envelopes:
        # The pid is the tid of the main thread.
        pid, = map(int, envelope.chunk['profile']['thread_metadata'])
        found = chunk_rules.problems(envelope, layouts[pid])
        check(found == [], f'{envelope.chunk["release"]}: {found[:5]}')
        chunks[pid] = envelope.chunk
    wrong = []
    for program, expected in programs.items():
        check(program.pid in chunks, f'no chunk of {program.name}')
        own = set(expected)
        for bar in chunk_rules.bars(chunks[program.pid]):
            seen = [n for n in bar.names if n in own]
            if seen != expected:
                wrong.append(f'{program.name}: {bar.names}, not {expected}')
    check(wrong == [], '\n'.join(wrong))
    unwind = profd.stats['unwind']
    check(unwind['failed'] == {} and unwind['truncated'] == 0 and
          unwind['complete'] >= len(programs), f'{unwind}')
    return profd


def start(box, program, mode):
    target = box.target(program, mode)
    target.name = f'{program} {mode}'
    return target, target.wait_line('expect (.*)')[1].split()


def test_waiting_in_the_depth(box):
    programs = dict(start(box, p, m) for p in PROGRAMS for m in MODES)
    for target in programs:
        harness.wait_for(lambda t=target: harness.blocked(t.pid),
                         f'{target.name} waits')
    profd = check_stacks(box, programs)
    check(profd.stats['stops'] <= len(programs),
          f'threads that wait were stopped: {profd.stats["stops"]}')


def test_running(box):
    programs = dict(start(box, p, 'spin') for p in ('unw_o2', 'unw_fp'))
    for target in programs:
        harness.wait_work(target.pid, TO_THE_DEPTH_S)
    check_stacks(box, programs)


def test_other_stack(box):
    """A handler on a stack of its own: the interrupted frames are there from
    the sample on for which the unwinder has sent a hint."""
    programs = dict(start(box, p, m) for p in ('unw_o2', 'unw_fp')
                    for m in ('other', 'other_spin'))
    for target in programs:
        if target.name.endswith('spin'):
            harness.wait_work(target.pid, TO_THE_DEPTH_S)
        else:
            harness.wait_for(lambda t=target: harness.blocked(t.pid),
                             f'{target.name} waits')
    profd = box.profd(programs, '--chunk-seconds=1').wait_attached()

    def seen(target):
        return [[n for n in bar.names if n in programs[target]]
                for chunk in profd.chunks
                if str(target.pid) in chunk['profile']['thread_metadata']
                for bar in chunk_rules.bars(chunk)]

    harness.wait_for(lambda: all(expected in seen(target) for target, expected
                                 in programs.items()), 'all stacks are whole')
    profd.interrupt()
    for target, expected in programs.items():
        stacks = seen(target)
        whole = stacks.index(expected)
        check(all(s == expected for s in stacks[whole:]) and
              all(s and s == expected[:len(s)] for s in stacks[:whole]),
              f'{target.name}: {stacks}')
    failed = profd.stats['unwind']['failed']
    check(set(failed) <= {'unreadable', 'unknown_register'}, f'{failed}')


# A program without names keeps its stack, which the server must not cut off.
def test_without_symbols(box):
    if not shutil.which('strip'):
        raise Skip('no strip (Debian: binutils)')
    stripped = box.dir / 'stripped'
    subprocess.run(['strip', '-o', stripped, BUILD / 'targets/unw_static'],
                   check=True)
    target = box.start([stripped, 'nanosleep'])
    target.wait_line('ready')
    harness.wait_for(lambda: harness.blocked(target.pid), 'it waits')
    layout = Layout(target.pid)
    profd = box.profile([target])
    envelope, = profd.envelopes
    found = chunk_rules.problems(envelope, layout)
    check(found == [], f'{found[:5]}')
    frames = envelope.chunk['profile']['frames']
    names = collections.Counter(f.get('function') for f in frames)
    by_offset = [f for f in frames
                 if (f.get('function') or '').startswith('stripped+0x')]
    stack, = envelope.chunk['profile']['stacks']
    check(by_offset == frames, f'{names}')
    outer = {frames[i]['function'] for i in stack[-2:]}
    check([f['in_app'] for f in frames] ==
          [f['function'] not in outer for f in frames], f'{frames}')
    check(len(frames) >= 6 and profd.stats['unwind']['failed'] == {},
          f'{profd.stats["unwind"]}')


if __name__ == '__main__':
    harness.main(globals())
