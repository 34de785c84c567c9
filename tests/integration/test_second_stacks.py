#!/usr/bin/python3
"""Work on stacks other than the thread's own (tests/targets/second_stacks):
the unwound stacks reach main from the first sample on, also with a new capture
and after an exec. Copies stay small.
"""

import os
import shutil
import signal

import harness
from harness import (BUILD, Skip, blocked, check, cpu_seconds, threads,
                     wait_for)

# Processor time for a hundred samples.
RATE_HZ, WORK_S = 202, 0.5
# Threads that sleep.
THREADS = 20
# Processor time in which a chunk of a second ends.
CHUNK_WORK_S = 1.5

# The highest mean size of a sample's copy if 10 KB of a second stack and 16 KB
# of the own one are in use, with the first samples.
SMALL_BYTES = 64 << 10


def has_main(chunk):
    """Returns for each sample of a chunk that has a stack whether the stack
    reaches main, or the start function of another thread."""
    profile = chunk['profile']
    names = [f.get('function') for f in profile['frames']]
    stacks = [profile['stacks'][s['stack_id']] for s in profile['samples']]
    return [not {'main', 'own', 'asleep'}.isdisjoint(names[f] for f in stack)
            for stack in stacks if stack]


def work(target, seconds=WORK_S):
    goal = cpu_seconds(target.pid) + seconds
    wait_for(lambda: cpu_seconds(target.pid) >= goal, f'{seconds} s of work')


def check_whole(profd):
    """Checks that no stack was cut off."""
    unwind = profd.stats['unwind']
    check(unwind['failed'] == {} and unwind['truncated'] == 0 and
          unwind['complete'] > 50, f'{unwind}')
    samples = [m for chunk in profd.chunks for m in has_main(chunk)]
    check(samples and all(samples),
          f'{samples.count(False)} of {len(samples)} stacks without main')


def bytes_per_sample(profd):
    return profd.stats['stack_bytes'] / profd.stats['captured']


def profile(box, *mode):
    target = box.target('second_stacks', *mode)
    profd = box.profile([target], '--rate', RATE_HZ, work=WORK_S)
    target.end()
    return profd


def test_deep_work_on_one(box):
    for kb in (100, 300):
        check_whole(profile(box, 'deep', kb))


def test_many_in_turn(box):
    for n in (1, 2, 4, 20):
        profd = profile(box, 'alternate', n)
        check_whole(profd)
        check(bytes_per_sample(profd) < SMALL_BYTES,
              f'{n} stacks: {bytes_per_sample(profd):.0f} bytes a sample')


def test_signal_stacks(box):
    for kb in (0, 100):
        check_whole(profile(box, 'signal', kb))


def test_first_samples_of_sleeping_threads(box):
    """Where the own stack of a thread ends is not known before its first stop,
    and a sleeping thread is not stopped. Its first sample, which lacks the own
    stack, is dropped and counted; the next one is complete."""
    for kb in (0, 100):
        target = box.target('second_stacks', 'asleep', THREADS, kb)
        for tid in threads(target.pid):
            wait_for(lambda: blocked(tid), 'it sleeps in its handler')
        profd = box.profile([target])
        target.end()
        unwind = profd.stats['unwind']
        check(unwind['failed'] == {} and unwind['truncated'] == 0 and
              unwind['complete'] >= THREADS, f'{unwind}')
        # The first samples, and those that were taken before the hint came.
        check(THREADS // 2 <= unwind['retaken'] <= 40 * THREADS,
              f'{unwind["retaken"]} of {THREADS} threads')
        samples = [m for chunk in profd.chunks for m in has_main(chunk)]
        check(len(samples) >= THREADS and all(samples),
              f'{samples.count(False)} of {len(samples)} stacks without main')
        names = {f.get('function') for chunk in profd.chunks
                 for f in chunk['profile']['frames']}
        check('on_signal_asleep' in names, f'{names}')


def test_many_coroutines(box):
    """The stacks of coroutines end at the coroutines' start, and cost no
    second range."""
    profd = profile(box, 'coroutines', 10000)
    check(profd.stats['unwind']['failed'] == {}, f'{profd.stats["unwind"]}')
    check(bytes_per_sample(profd) < SMALL_BYTES // 2,
          f'{bytes_per_sample(profd):.0f} bytes a sample')


def test_preempted_coroutine(box):
    """A thread that is stopped before the first instruction of a handler is
    sampled in the code that the signal interrupts, and not in the handler,
    from which no sample has the coroutine's stack."""
    target = box.target('second_stacks', 'preempted')
    profd = box.profile([target], '--rate', RATE_HZ, '--mode', 'cpu', work=WORK_S)
    target.end()
    profile, = (c['profile'] for c in profd.chunks)
    stacks = [[profile['frames'][f].get('function') for f in profile['stacks'][s['stack_id']]]
              for s in profile['samples']]
    whole = sum('coroutine' in s for s in stacks)
    handler = sum(s[:1] == ['on_urgent'] for s in stacks)
    check(whole > 50 and handler < whole / 50, f'{handler} stacks end at the handler, {whole} do not')


def test_large_frame(box):
    """A large frame is excluded from the copy after the first samples."""
    profd = profile(box, 'frame')
    unwind = profd.stats['unwind']
    check(unwind['failed'] == {} and
          unwind['complete'] > 5 * unwind['truncated'], f'{unwind}')


def check_later_chunks(profd, target):
    """Checks that no stack is cut off from now on."""
    before = len(profd.chunks)
    work(target, CHUNK_WORK_S)
    profd.interrupt()
    # The first of these chunks may have begun before.
    samples = [m for c in profd.chunks[before + 1:] for m in has_main(c)]
    check(samples and all(samples),
          f'{samples.count(False)} of {len(samples)} stacks without main')


def check_after_the_first(box, *mode):
    target = box.target('second_stacks', *mode)
    profd = box.profd([target], '--chunk-seconds=1').wait_attached()
    work(target)
    check_later_chunks(profd, target)
    unwind = profd.stats['unwind']
    check(unwind['complete'] > 100, f'{unwind}')
    target.end()


def test_deep_on_the_own_stack(box):
    """Stacks that are deeper than the first copies: a deep recursion, two
    large frames, large frames that move, or are on another thread's stack, or
    below a handler's."""
    for mode in (('own', 0, 540, 0, 1900), ('own', 0, 540, 2, 100),
                 ('own', 100, -540, 1, 100),
                 ('own-thread', 600, 540, 1, 600), ('signal', 1000)):
        check_after_the_first(box, *mode)


def replace_capture(profd):
    old, = profd.helpers()['capture']
    os.kill(old, signal.SIGKILL)
    wait_for(lambda: set(profd.helpers()['capture']) - {old},
             'another capture')
    profd.wait_attached()


def test_another_capture(box):
    """The new capture gets the hints of its predecessor."""
    target = box.target('second_stacks', 'signal', 0)
    profd = box.profd([target], '--chunk-seconds=1').wait_attached()
    work(target)
    replace_capture(profd)
    check_later_chunks(profd, target)
    check(bytes_per_sample(profd) < SMALL_BYTES,
          f'{bytes_per_sample(profd):.0f} bytes a sample')


def test_another_program_at_the_same_addresses(box):
    """The thread has the same id as the one before, and similar stacks."""
    if not shutil.which('setarch'):
        raise Skip('no setarch')
    target = box.start(['setarch', '-R', BUILD / 'targets/second_stacks',
                        'exec'])
    target.wait_line('ready.*')
    profd = box.profd([target], '--chunk-seconds=1').wait_attached()
    wait_for(lambda: target.stdout.count('ready') == 2, 'the second program')
    check_later_chunks(profd, target)
    check(bytes_per_sample(profd) < SMALL_BYTES,
          f'{bytes_per_sample(profd):.0f} bytes a sample')


if __name__ == '__main__':
    harness.main(globals())
