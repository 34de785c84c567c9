#!/usr/bin/python3
"""sentry-profctl convert of profiles that are large, or of threads that mostly wait."""

import json
import math
import os
import subprocess

import formats
import harness
from harness import BUILD, check
from test_convert import NOTE, check_formats, convert, made_chunk, ran, write

NAPS = {'clock_nanosleep', '__clock_nanosleep'}


def test_a_program_that_mostly_waits(box):
    """The program works for 3 ms and sleeps for 7 ms. The times in the files
    equal the kernel's."""
    looks = 400
    target = box.start([BUILD / 'targets/naps', '1', '3000', '7000'])
    target.wait_line('ready')
    before = ran(target)
    profd = box.profd([target], '--chunk-seconds', '1').wait_attached().wait_looks()
    begin = ran(target)
    harness.wait_for(lambda: ran(target) >= begin + looks / 101 * 0.3, 'work')
    least = ran(target) - begin
    profd.interrupt()
    most = ran(target) - before
    check(len(profd.chunks) > 1, 'more than one chunk')
    _, said = convert(profd.output, '--to', 'folded')
    check(NOTE not in said, said)
    wanted = {state: formats.of_chunks(profd.chunks, state)
              for state in (None, 'running', 'ready', 'waiting')}
    found = {state: formats.of_folded(convert(
        profd.output, '--to', 'folded', '--threads', '--state', state or 'all')[0])
        for state in wanted}
    check(found == wanted, f'{found}')
    check(found['running'] + found['ready'] + found['waiting'] == found[None], f'{found}')
    # Five standard deviations of a share of 0.3 in this many looks.
    luck = 5 * math.sqrt(0.7 / 0.3 / looks)
    running = sum(found['running'].values()) / 1e6
    check(least * (1 - luck) <= running <= most * (1 + luck),
          f'{running:.2f} s, the kernel says {least:.2f} to {most:.2f} s')
    for state, functions, least in (('running', {'work'}, 0.8),
                                    ('waiting', NAPS, 0.8)):
        of = found[state]
        share = sum(n for (_, names), n in of.items() if names[-1] in functions) / \
            sum(of.values())
        check(share > least, f'{share:.2f} of {state} is in {functions}: {of}')


def test_large_chunks(box):
    """4,096 frames, recursion, and many samples."""
    deep = [{'function': f'f{i}'} for i in range(4096)]
    round_and_round = list(range(100)) * 40
    chunk = made_chunk(deep, [list(range(4096)), round_and_round, []],
                       [(i / 1000, '1', i % 3) for i in range(1, 20)])
    check_formats([write(box, [chunk])], formats.of_chunks([chunk]))
    wide = made_chunk([{'function': 'f'}], [[0]] * 1000,
                      [(1 + i // 100 / 1000, str(i % 100), i % 1000)
                       for i in range(30000)])
    check_formats([write(box, [wide])], formats.of_chunks([wide]))


def peak_bytes(path, *args):
    child = subprocess.Popen([BUILD / 'sentry-profctl', 'convert', path, *args],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, child.returncode, usage = os.wait4(child.pid, 0)
    check(child.returncode == 0, f'status {child.returncode}')
    return usage.ru_maxrss * 1024


def test_memory(box):
    """Only one chunk is in memory at a time, however many there are."""
    directory = box.make_dir('many')
    sizes = []
    for n in range(16):
        chunk = made_chunk([{'function': f'f{i}'} for i in range(100)],
                           [[i] for i in range(100)],
                           [(1000 + 10 * n + i / 10000, str(i % 10), i % 100)
                            for i in range(50000)])
        chunk['chunk_id'] = f'{n:032x}'
        data = json.dumps(chunk).encode()
        sizes.append(len(data))
        (directory / f'{n:06}.envelope').write_bytes(
            b'{"event_id":"0"}\n{"type":"profile_chunk","length":%d}\n%s\n'
            % (len(data), data))
        if n == 0:
            one = peak_bytes(directory, '--to', 'folded')
    many = peak_bytes(directory, '--to', 'folded')
    check(many < 1.5 * one, f'{many} bytes for 16 chunks, {one} for one')


if __name__ == '__main__':
    harness.main(globals())
