#!/usr/bin/python3
"""A hundred targets at once: more sessions and chunks than the sockets between
the processes hold. Runs alone: no sample may be missed on a machine that has
the time.
"""

import harness
from account import check_sums
from harness import Skip, check, wait_for

harness.filters_kill()

TARGETS = 100


def start(box, chunk_seconds, *args, **options):
    targets = [box.start(['sleep', 'infinity']) for _ in range(TARGETS)]
    return targets, box.profd(targets, '--chunk-seconds', str(chunk_seconds),
                              *args, **options)


def end(targets, profd):
    """Ends the daemon; returns its statistics. Checks that no child was
    replaced and no target disturbed."""
    profd.interrupt()
    for line in ('replaced', 'starting it again', 'the queue is full'):
        check(line not in profd.stderr, profd.stderr[-2000:])
    for target in targets:
        check(target.running() and harness.tracer(target.pid) == 0,
              'a target was harmed')
    chunks = profd.stats['chunks']
    check(chunks['made'] >= TARGETS, f'{chunks}')
    return chunks


def test_files(box):
    targets, profd = start(box, 1)
    wait_for(lambda: len(list(profd.output.glob('*.envelope'))) >= TARGETS,
             'a chunk of each')
    chunks = end(targets, profd)
    check(chunks['written'] == chunks['made'] and not chunks['discarded'],
          f'{chunks}')
    check(all(t['chunks']['made'] > 0 for t in profd.stats['targets']),
          'a target has no chunk')


def first_samples(box, targets):
    """Returns true if each thread has a first sample."""
    profd = box.profd(targets, '--chunk-seconds', '1')
    wait_for(lambda: len(list(profd.output.glob('*.envelope'))) >= TARGETS,
             'a chunk of each')
    end(targets, profd)
    check_sums(profd.stats, arrived='written')
    return 'ring_full' not in profd.stats['missed'] and \
        all(t['captured'] >= 20 for t in profd.stats['targets'])


def test_start(box):
    """The first samples of 2,000 threads, which together exceed the ring, are
    all taken, unless the unwinder gets no processor for seconds."""
    targets = [box.start((harness.BUILD / 'bench/target', 'sleepers=19'))
               for _ in range(TARGETS)]
    for target in targets:
        target.wait_line('ready.*')
    stretches = []
    for _ in range(5):
        stretches.append(harness.stretch())
        if first_samples(box, targets):
            return
        stretches.append(harness.stretch())
    if min(stretches) > 1.5:
        raise Skip(f'others have the processors: {stretches}')
    check(False, f'samples are lost, with time {stretches}')


def test_server(box):
    """All chunks are made at the same ticks: more than ship can take at once.
    Chunks of the end may come too late.
    """
    server = box.server()
    targets, profd = start(box, 3, '--dsn', server.dsn, output=False,
                           env=server.env)
    wait_for(lambda: len(server.requests) >= TARGETS, 'a chunk of each')
    chunks = end(targets, profd)
    check(chunks['sent'] >= TARGETS and
          chunks['sent'] + sum(chunks['discarded'].values()) == chunks['made'],
          f'{chunks}')


if __name__ == '__main__':
    harness.main(globals())
