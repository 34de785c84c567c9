#!/usr/bin/python3
"""Hosts that start at the same time do not send chunks at the same time.

Runs alone: it compares how long chunks are.
"""

import harness
from harness import check, wait_for

CHUNK_S = 2
N = 8


def lengths(profd, server):
    """Returns the lengths of each process's first and second chunk, in
    seconds."""
    found = {}
    for chunk in server.chunks:
        times = [s['timestamp'] for s in chunk['profile']['samples']]
        found.setdefault(chunk['profiler_id'], []).append(
            max(times) - min(times))
    return [f for f in found.values() if len(f) >= 2]


def first_chunks(box):
    server = box.server(tls=False)
    targets = [box.target('shares') for _ in range(N)]
    profd = box.profd(targets, '--chunk-seconds', CHUNK_S, '--dsn', server.dsn,
                      output=None)
    found = wait_for(lambda: len(lengths(profd, server)) == N and
                     lengths(profd, server), 'two chunks of each')
    profd.interrupt()
    for target in targets:
        target.end()
    # Two of eight values within 1.5 seconds are this far apart, except once
    # in ten million runs.
    first = [f[0] for f in found]
    check(max(first) - min(first) > 0.1, f'not by chance: {first}')
    # If samples are missing, a chunk looks shorter than it is.
    return [f for f in found if f[0] < CHUNK_S / 4 - 0.1 or
            f[1] < CHUNK_S - 0.1]


def test_first_chunks(box):
    harness.in_turns(lambda: first_chunks(box))


def files_alone(box):
    targets = [box.target('shares') for _ in range(3)]
    profd = box.profd(targets, '--chunk-seconds', '1')
    profd.wait_chunks(6)
    profd.interrupt()
    for target in targets:
        target.end()
    first = {}
    for chunk in profd.chunks:
        times = [s['timestamp'] for s in chunk['profile']['samples']]
        first.setdefault(chunk['profiler_id'], max(times) - min(times))
    return [f for f in first.values() if f < 0.9]


def test_files_alone_have_none(box):
    harness.in_turns(lambda: files_alone(box))


if __name__ == '__main__':
    harness.main(globals())
