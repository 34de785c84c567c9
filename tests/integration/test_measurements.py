#!/usr/bin/python3
"""What a chunk says of the processor time and the memory that its target used."""

import pathlib
import re

import chunk_rules
import harness
from harness import check, cpu_seconds, wait_for


def points(profd, name):
    """[(timestamp, value)] over all chunks that there are."""
    return [(v['timestamp'], v['value']) for e in profd.envelopes
            for v in e.chunk.get('measurements', {}).get(name,
                                                          {'values': []})['values']]


def peak_bytes(pid):
    status = pathlib.Path(f'/proc/{pid}/status').read_text()
    return 1024 * int(re.search(r'VmHWM:\s*(\d+)', status)[1])


def run(box, target, n):
    """Until there are points in n chunks."""
    profd = box.profd([target], '--chunk-seconds', '3')
    wait_for(lambda: sum(b'"measurements"' in p.read_bytes() for p in
                         profd.output.glob('*.envelope')) >= n,
             f'{n} chunks with measurements')
    return profd


def test_processor_and_memory(box):
    """The curve's area is no more than what the process has used."""
    target = box.target('shares')
    before = cpu_seconds(target.pid)
    profd = run(box, target, 2)
    peak = peak_bytes(target.pid)
    profd.interrupt()
    used = cpu_seconds(target.pid) - before
    for e in profd.envelopes:
        found = chunk_rules.problems(e)
        check(found == [], f'{found[:5]}')
    cpu = points(profd, 'cpu_usage')
    area = sum(value / 100 * (b - a) for (a, _), (b, value) in
               zip(cpu, cpu[1:]))
    # cpu_seconds() counts in hundredths, and less than a point's interval
    # lies before the first one.
    check(0 < area <= used + 0.05, f'{area} of {used}: {cpu}')
    check(max(value for _, value in cpu) > 0.1, f'{cpu}')
    memory = [value for _, value in points(profd, 'memory_footprint')]
    check(len(memory) == len(cpu), f'{memory}')
    # The kernel sums up what is in memory now and then.
    check(all(0 < m <= peak + (1 << 20) for m in memory),
          f'{memory}, at most {peak}')


def test_who_waits_uses_nothing(box):
    target = box.start(['sleep', '1000'])
    wait_for(lambda: harness.blocked(target.pid), 'sleep to sleep')
    profd = run(box, target, 1).interrupt()
    values = [value for _, value in points(profd, 'cpu_usage')]
    check(values and max(values) < 10, f'{values}')


if __name__ == '__main__':
    harness.main(globals())
