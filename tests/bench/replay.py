"""Measures what a sample costs after the stop, by recorded samples (unwind.c)."""

import json

import harness
import measure
import report

NAME = 'unwind'
BUSY = 8
RATE_HZ = 101
# For each round. The program prints the median of what it measures.
TICKS = 200
ROUNDS = 3

# (the program's name of a figure, its label)
ROWS = [
    ('warm', 'walk, warm caches, the same stack as in the last walk of the thread'),
    ('warm_stranger', 'walk, warm caches, the first stack of a thread'),
    ('cold_read', 'reading the copied stacks, cold caches'),
    ('cold_walk', 'walk, cold caches'),
    ('cold_all', 'walk and aggregate, cold caches'),
    ('close', 'chunk: ending it and looking up names'),
    ('encode', 'chunk: encoding as JSON'),
    ('pack', 'chunk: compression for the server'),
    ('copy', 'chunk: writing it to a file, uncompressed'),
]

# Unwinders on the same stacks, with warm caches.
BESIDE = [
    ('beside_ours', 'sentry-profd'),
    ('libdwfl', 'libdwfl, from the recorded stack'),
    ('libunwind', 'libunwind, from the recorded stack'),
    ('libunwind_ptrace', 'libunwind-ptrace, of a stopped thread'),
]


def run(box, smoke=False):
    """Returns the program's figures, in ns: of each the smallest of the rounds."""
    ticks, rounds = (5, 1) if smoke else (TICKS, ROUNDS)
    target = measure.Target(box, busy=BUSY)
    found = []
    for _ in range(rounds):
        program = box.start([harness.BUILD / 'bench/unwind',
                             target.programs[0].pid, RATE_HZ, ticks])
        program.wait()
        found.append(json.loads(program.stdout))
    return {key: min(f[key] for f in found) for key in found[0]}


# The limit for a stack with warm caches, and at least how many times as long other
# unwinders must take.
LIMIT_NS = 500
SLOWER = [('libdwfl', 25), ('libunwind_ptrace', 100)]


def wanted(figures):
    """Returns requirements as report.requirements()."""
    names = dict(BESIDE)
    found = [(f'stack of {figures["frames"]:.0f} frames, warm caches',
              f'< {LIMIT_NS} ns', f'{figures["warm"]:,.0f} ns',
              figures['warm'] < LIMIT_NS)]
    for key, times in SLOWER:
        ratio = figures[key] / figures['beside_ours']
        found.append((f'the same stack by {names[key]}',
                      f'>= {times} times sentry-profd', f'{ratio:,.0f}',
                      ratio >= times))
    return found


def text(figures):
    rows = [[what, f'{figures[key]:,.0f}'] for key, what in ROWS]
    head = ('### Unwinding, of recorded samples (`T=unwind`)\n\n'
            f'{figures["frames"]:.0f} frames in '
            f'{figures["stack_bytes"]:,.0f} bytes of stack; a chunk has '
            f'{figures["chunk_bytes"]:.0f} bytes per sample, '
            f'{figures["packed_bytes"]:.1f} after compression.\n\n')
    beside = [[what, f'{figures[key]:,.0f}',
               f'{figures[key] / figures["beside_ours"]:,.0f}']
              for key, what in BESIDE]
    between = (f'\nWalks of {figures["beside"]} of these stacks with warm caches, the '
               'unwinders in turn. libdwfl finds the same frames in '
               f'{figures["libdwfl_same"]} of them, libunwind in '
               f'{figures["libunwind_same"]}:\n\n')
    return (head + report.table(['step', 'ns per sample'], rows) + between +
            report.table(['unwinder', 'ns per stack', 'times sentry-profd'], beside))
