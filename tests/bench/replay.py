"""What comes after the stop, of records that are played again (unwind.c)."""

import json

import harness
import measure
import report

NAME = 'unwind'
BUSY = 8
RATE_HZ = 101
# Of each run; the program takes the median of what it measures.
TICKS = 200
ROUNDS = 3

# What the program calls it, and what it is.
ROWS = [
    ('warm', 'walk, warm: the thread was there a moment ago'),
    ('warm_stranger', 'walk, warm: a thread that was never seen'),
    ('cold_read', 'reading the copied stacks, caches cold'),
    ('cold_walk', 'walk, caches cold'),
    ('cold_all', 'walk and aggregate, caches cold'),
    ('close', 'chunk: its end, names included'),
    ('encode', 'chunk: JSON'),
    ('pack', 'chunk: compressed, to be sent'),
    ('copy', 'chunk: as it is, to a file'),
]

# Other unwinders on the same stacks, all warm.
BESIDE = [
    ('beside_ours', 'sentry-profd'),
    ('libdwfl', 'libdwfl, from the recorded stack'),
    ('libunwind', 'libunwind, from the recorded stack'),
    ('libunwind_ptrace', 'libunwind-ptrace, of a stopped thread'),
]


def run(box, ticks=TICKS, rounds=ROUNDS):
    """The program's figures: of each the least of the rounds, in ns."""
    target = measure.Target(box, busy=BUSY)
    found = []
    for _ in range(rounds):
        program = box.start([harness.BUILD / 'bench/unwind',
                             target.programs[0].pid, RATE_HZ, ticks])
        program.wait()
        found.append(json.loads(program.stdout))
    return {key: min(f[key] for f in found) for key in found[0]}


# A warm stack of 30 frames, and how much longer others may take at least.
LIMIT_NS = 500
SLOWER = [('libdwfl', 25), ('libunwind_ptrace', 100)]


def wanted(figures):
    """As report.requirements."""
    if figures is None:
        return []
    names = dict(BESIDE)
    found = [(f'a warm stack of {figures["frames"]:.0f} frames',
              f'< {LIMIT_NS} ns', f'{figures["warm"]:,.0f} ns',
              figures['warm'] < LIMIT_NS)]
    for key, times in SLOWER:
        ratio = figures[key] / figures['beside_ours']
        found.append((f'the same by {names[key]}', f'>= {times} of ours',
                      f'{ratio:,.0f}', ratio >= times))
    return found


def text(figures):
    rows = [[what, f'{figures[key]:,.0f}'] for key, what in ROWS]
    head = ('### Unwinding, of recorded samples (`T=unwind`)\n\n'
            f'{figures["frames"]:.0f} frames in '
            f'{figures["stack_bytes"]:,.0f} bytes of stack; a chunk has '
            f'{figures["chunk_bytes"]:.0f} bytes a sample, '
            f'{figures["packed_bytes"]:.1f} compressed.\n\n')
    beside = [[what, f'{figures[key]:,.0f}',
               f'{figures[key] / figures["beside_ours"]:,.0f}']
              for key, what in BESIDE]
    between = (f'\nWalks of {figures["beside"]} of these stacks, warm, in turn; '
               f'{figures["libdwfl_same"]} and {figures["libunwind_same"]} of '
               'them are frame by frame the same by libdwfl and libunwind:\n\n')
    return (head + report.table(['', 'ns a sample'], rows) + between +
            report.table(['', 'ns a stack', 'of ours'], beside))
