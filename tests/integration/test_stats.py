#!/usr/bin/python3
"""--stats: what the figures of several targets have to do with their sum."""

import harness
from harness import check
from progress import Progress

PROCESSES = {'broker', 'capture', 'unwind', 'ship'}


def test_what_each_target_costs(box):
    """A busy one and an idle one share all processes."""
    busy = Progress(box)
    idle = box.start(['sleep', '1000'])
    profd = box.profd([busy, idle], '--duration', '2').finish()
    stats = profd.stats
    of_busy, of_idle = stats['targets']
    check((of_busy['pid'], of_idle['pid']) == (busy.pid, idle.pid),
          f'{stats["targets"]}')
    cpu, memory = stats['cpu_seconds'], stats['rss_peak_bytes']
    check(set(cpu) == set(memory) == PROCESSES, f'{cpu}, {memory}')
    for name in PROCESSES:
        parts = [t['cpu_seconds'][name] for t in stats['targets']]
        check(abs(sum(parts) - cpu[name]) < 1e-5,
              f'{name}: {parts} is not {cpu[name]}')
        check(all(t['rss_peak_bytes'][name] == memory[name] > 0
                  for t in stats['targets']), f'{name}: {stats}')
    check(of_busy['cpu_seconds']['capture'] >
          2 * of_idle['cpu_seconds']['capture'] > 0 and
          min(t['cpu_seconds']['unwind'] for t in stats['targets']) > 0,
          f'{of_busy["cpu_seconds"]}, {of_idle["cpu_seconds"]}')


if __name__ == '__main__':
    harness.main(globals())
