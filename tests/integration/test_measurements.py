#!/usr/bin/python3
"""The processor time and the memory of the target in a chunk."""

import pathlib
import re
import sys

import chunk_rules
import harness
from harness import check, cpu_seconds, wait_for


MEMORY = """
import mmap, sys, time
own = b'x' * (32 << 20)
with open(sys.argv[1], 'rb') as f:
    m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
    sum(m[i] for i in range(0, len(m), 4096))
print('ready', flush=True)
time.sleep(10000)
"""


def points(profd, name):
    """Returns [(timestamp, value)] over all chunks."""
    return [(v['timestamp'], v['value']) for e in profd.envelopes
            for v in e.chunk.get('measurements', {}).get(name,
                                                          {'values': []})['values']]


def peak_bytes(pid):
    status = pathlib.Path(f'/proc/{pid}/status').read_text()
    return 1024 * int(re.search(r'VmHWM:\s*(\d+)', status)[1])


def run(box, target, n):
    """Runs until n chunks have values."""
    profd = box.profd([target], '--chunk-seconds', '3')
    wait_for(lambda: sum(b'"measurements"' in p.read_bytes() for p in
                         profd.output.glob('*.envelope')) >= n,
             f'{n} chunks with measurements')
    return profd


def test_processor_and_memory(box):
    """The area under the curve is at most what the process has used."""
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
    # cpu_seconds() has a resolution of 0.01 s, and less than the interval of a
    # value precedes the first one.
    check(0 < area <= used + 0.05, f'{area} of {used}: {cpu}')
    check(max(value for _, value in cpu) > 0.1, f'{cpu}')
    memory = [value for _, value in points(profd, 'memory_footprint')]
    check(len(memory) == len(cpu), f'{memory}')
    # The kernel adds up the memory only now and then.
    check(all(0 < m <= peak + (1 << 20) for m in memory),
          f'{memory}, at most {peak}')


def status_bytes(pid, name):
    status = pathlib.Path(f'/proc/{pid}/status').read_text()
    return 1024 * int(re.search(rf'{name}:\s*(\d+)', status)[1])


def test_what_no_file_holds(box):
    """A program with 32 MB of its own and 8 MB of a file in memory."""
    file = box.dir / 'file'
    file.write_bytes(bytes(8 << 20))
    target = box.start([sys.executable, '-c', MEMORY, file])
    target.wait_line('ready')
    profd = run(box, target, 1)
    anonymous = status_bytes(target.pid, 'RssAnon')
    resident = status_bytes(target.pid, 'VmRSS')
    profd.interrupt()
    check(resident - anonymous > 8 << 20 and anonymous > 32 << 20,
          f'{resident} {anonymous}')
    for name, value in (('memory_footprint', resident),
                        ('memory_native_footprint', anonymous)):
        found = [v for _, v in points(profd, name)]
        # The kernel adds up the memory only now and then.
        check(found and all(abs(v - value) < 1 << 20 for v in found),
              f'{name}: {found}, not {value}')


def test_who_waits_uses_nothing(box):
    target = box.start(['sleep', '1000'])
    wait_for(lambda: harness.blocked(target.pid), 'sleep to sleep')
    profd = run(box, target, 1).interrupt()
    values = [value for _, value in points(profd, 'cpu_usage')]
    check(values and max(values) < 10, f'{values}')


if __name__ == '__main__':
    harness.main(globals())
