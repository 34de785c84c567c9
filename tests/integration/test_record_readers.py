#!/usr/bin/python3
"""sentry-profctl record beside other readers of a profile: Sentry, clients that do not read, another
daemon."""

import harness
from harness import check, wait_for
from test_control import listening
from test_record import DONE, Recording, functions


def seconds(chunk):
    times = [s['timestamp'] for s in chunk['profile']['samples']]
    return min(times), max(times)


def test_beside_sentry(box):
    """A recording has its own chunks, and those for Sentry are unchanged."""
    target = box.target('unw_o2', 'spin')
    profd, ctl = listening(box, [target], '--chunk-seconds', '5')
    profd.wait_attached().wait_looks()
    first, second = (Recording(ctl.path, target.pid) for _ in range(2))
    chunks = [first.next(), first.next()]
    rest, end = first.finish()
    check(end == DONE, f'{end}')
    chunks += rest
    spans = [seconds(c) for c in chunks]
    # Each chunk begins where the last one ended: no time is missing or in two
    # chunks.
    for before, after in zip(spans, spans[1:]):
        check(before[1] == after[0], f'{spans}')
    check(len({c['profiler_id'] for c in chunks}) == 1 and
          all('leaf_spin' in functions(c) for c in chunks), 'its stacks')
    check(all(i['code_id'] for c in chunks
              for i in c['debug_meta']['images'] if i.get('code_id')) and
          any(i.get('code_id') for i in chunks[0]['debug_meta']['images']),
          'what a file has')
    other, end = second.finish()
    check(other and end == DONE and
          other[0]['profiler_id'] != chunks[0]['profiler_id'], 'another')
    profd.wait_chunks(2)
    profd.interrupt()
    written = profd.chunks
    check(chunks[0]['profiler_id'] not in {c['profiler_id'] for c in written},
          'no file has it')
    spans = [seconds(c) for c in written]
    for before, after in zip(spans, spans[1:]):
        check(before[1] == after[0], f'{spans}')


def test_who_does_not_read(box):
    """A client that does not read loses chunks and delays no other. A client
    that disconnects ends its recording."""
    target = box.target('unw_o2', 'spin')
    profd, ctl = listening(box, [target])
    profd.wait_attached().wait_looks()
    slow, other = (Recording(ctl.path, target.pid) for _ in range(2))
    count = 0
    while count < 14:
        check(isinstance(other.next(), dict), 'it goes on')
        count += 1
    chunks, end = slow.finish()
    check(0 < len(chunks) < count and end == DONE,
          f'{len(chunks)} of {count}, {end}')
    slow.close()
    for _ in range(3):
        fourth = wait_for(lambda: three(ctl.path, target.pid), 'three more')
        fifth = Recording(ctl.path, target.pid)
        check(fifth.result == 10 and fifth.socket is None, f'{fifth.result}')
        for r in fourth:
            r.close()
    check(other.finish()[1] == DONE, 'its end')
    profd.interrupt()


def three(path, pid):
    """Makes three recordings; None while others have not ended yet."""
    made = [Recording(path, pid) for _ in range(3)]
    if all(r.result == 0 for r in made):
        return made
    for r in made:
        if r.socket is not None:
            r.close()
    return None


def test_another_daemon(box):
    """sentry-profd --pid for a process that another daemon profiles names the
    commands to use instead."""
    target = box.target('unw_o2', 'spin')
    profd, _ = listening(box, [target])
    profd.wait_attached()
    other = box.start([harness.BUILD / 'sentry-profd', '--pid', target.pid,
                       '--duration', '1'])
    other.wait()
    check(f'sentry-profctl stack {target.pid}, or record {target.pid} -o' in
          other.stderr, other.stderr)
    profd.interrupt()


if __name__ == '__main__':
    harness.main(globals())
