#!/usr/bin/python3
"""SIGKILL to each of the four processes, at random moments: at least 50 kills
of a daemon that profiles one busy program.

After each kill the program goes on with all its threads. If the broker is
killed, the other processes end, and the program is not traced. A killed child
is replaced, and its losses are counted.

The moments are drawn from a seed, which is printed when a test fails. With
SEED=N in the environment they are drawn again, but the processes may do other
things at these moments.
"""

import contextlib
import os
import random
import signal
import time

import harness
from harness import Failure, check, children, proc_status, threads, wait_for
from progress import Progress, speed

# At the end of a run a kill may find no process, so there are a few more than
# 50. KILLS in the environment sets the number (make soak: 1,000).
KILLS = int(os.environ.get('KILLS') or 58)
BROKER_KILLS = KILLS * 16 // 58
CHILD_KILLS = 3  # in each of these runs
RUNS = -(-(KILLS - BROKER_KILLS) // CHILD_KILLS)

SEED = int(os.environ.get('SEED') or random.randrange(10**6))


def seeded(test):
    """Makes a test(box) of a test(box, rng), and prints the seed if the test
    fails."""
    def run(box):
        try:
            test(box, random.Random(f'{SEED} {test.__name__}'))
        except Failure as e:
            raise Failure(f'{e} (SEED={SEED})') from e
    return run


def kill_broker(target, profd):
    os.kill(profd.pid, signal.SIGKILL)
    profd.wait()

    def others_are_gone():
        return set(children(os.getpid())) <= {target.pid}
    try:
        wait_for(others_are_gone, '')
    except Failure:
        left = [f'{harness.exe_name(p)} ({harness.state(p)})'
                for p in children(os.getpid()) if p != target.pid]
        raise Failure(f'still there after the broker: {left}') from None
    target.check_untouched()
    target.check_going_on()


@seeded
def test_broker(box, rng):
    target = Progress(box)
    for _ in range(BROKER_KILLS):
        profd = box.profd([target])
        # Half of the kills come during the start, which takes 50 ms.
        if rng.random() < 0.5:
            time.sleep(rng.uniform(0, 0.1))
        else:
            profd.wait_attached()
            time.sleep(rng.uniform(0, 0.5))
        check(profd.running(), f'the broker has ended: {profd.stderr}')
        kill_broker(target, profd)


def kill_child(profd, kind):
    """Kills a child at once, or the next one if there is none now."""
    def kill():
        check(profd.running(), f'the broker has ended: {profd.stderr}')
        for pid in profd.helpers()[kind]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                return pid
        return 0
    return wait_for(kill, f'a process to kill: {kind}')


def wait_replaced(profd, kind, killed):
    wait_for(lambda: set(profd.helpers()[kind]) - {killed},
             f'{kind} is replaced')
    profd.wait_attached()


def check_sums(profd):
    stats = profd.stats
    missed, chunks = stats['missed'], stats['chunks']
    check(stats['samples_expected'] ==
          stats['samples_taken'] + sum(missed.values()),
          f'expected is not taken and missed: {stats}')
    check(stats['samples_taken'] ==
          stats['captured'] + stats['repeated'] + stats['filled'],
          f'taken is not the sum of its parts: {stats}')
    check(chunks['made'] == chunks['written'] +
          sum(chunks['discarded'].values()), f'chunks are missing: {chunks}')
    check(chunks['written'] == len(profd.envelopes),
          f'{len(profd.envelopes)} files, {chunks}')


def check_losses(profd, kills):
    """Checks that the losses are those of these kills."""
    missed, chunks = profd.stats['missed'], profd.stats['chunks']
    # The second start is at least 100 ms later: ten ticks.
    if kills.count('capture') > 1:
        check(missed.get('no_capture', 0) > 0,
              f'capture died twice, and nothing was missed: {missed}')
    check((chunks['discarded'].get('unwind_died', 0) > 0) ==
          ('unwind' in kills), f'chunks lost with {kills}: {chunks}')


def check_samples_went_on(profd, target, since):
    """Checks that the busy threads have samples after the last replacement."""
    last = {}
    for chunk in profd.chunks:
        for s in chunk['profile']['samples']:
            tid = s['thread_id']
            last[tid] = max(last.get(tid, 0), s['timestamp'])
    busy = [t for t in threads(target.pid)
            if proc_status(t, 'Name').startswith('busy')]
    check(len(busy) == 4, 'the target has four busy threads')
    for tid in busy:
        check(last.get(str(tid), 0) > since,
              f'thread {tid}: no samples after the last replacement')


def run_and_kill(box, rng, target, order):
    """Runs the daemon, and kills children."""
    profd = box.profd([target], '--chunk-seconds', '1').wait_attached()
    # If no ship has ever worked, the daemon rightly gives up. ship is ready
    # once it is in its sandbox.
    wait_for(lambda: any(proc_status(pid, 'Seccomp') == '2'
                         for pid in profd.helpers()['ship']), 'a ship')
    replaced = None
    for n, kind in enumerate(order):
        if n == len(order) - 1 and rng.random() < 0.3:
            # Kills a child during the daemon's end, if the child still runs.
            profd.signal(signal.SIGINT)
            time.sleep(rng.uniform(0, 0.05))
            for pid in profd.helpers()[kind]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            replaced = None
            break
        time.sleep(rng.uniform(0, 0.4))
        killed = kill_child(profd, kind)
        target.check_going_on()
        # A child that was killed while another was being replaced counts, too.
        if rng.random() < 0.7 or n == len(order) - 1:
            wait_replaced(profd, kind, killed)
            replaced = time.time()
    if replaced:
        profd.wait_attached()
        replaced = time.time()
        profd.wait_looks()
        harness.wait_work(target.pid, 0.3)
        profd.signal(signal.SIGINT)
    check(profd.wait() in (0, harness.ALL_LOST), profd.stderr)
    target.check_untouched()
    target.check_going_on()
    check_sums(profd)
    if replaced:
        check_losses(profd, order)
        check_samples_went_on(profd, target, replaced)


@seeded
def test_children(box, rng):
    target, other = Progress(box), Progress(box, busy=1)
    before = speed(target, other, lambda: harness.wait_work(target.pid, 1))
    kinds = ['capture', 'unwind', 'ship'] * (RUNS * CHILD_KILLS // 3)
    rng.shuffle(kinds)

    def all_runs():
        for i in range(0, len(kinds), CHILD_KILLS):
            run_and_kill(box, rng, target, kinds[i:i + CHILD_KILLS])
    during = speed(target, other, all_runs)
    check(during > 0.5 * before,
          f'{during:.2f} of the other one\'s speed, {before:.2f} without the '
          'daemon')


def test_ship_with_an_envelope_on_its_way(box):
    """ship's successor gets the envelope."""
    target = Progress(box)
    profd = box.profd([target], '--chunk-seconds', '1').wait_attached()
    ship, = wait_for(lambda: profd.helpers()['ship'], 'ship')
    os.kill(ship, signal.SIGSTOP)
    wait_for(lambda: list(profd.output.glob('.*.part')),
             'an envelope that is not written')
    os.kill(ship, signal.SIGKILL)
    wait_for(lambda: profd.chunks, 'the envelope, after all')
    profd.interrupt()
    check_sums(profd)
    check(profd.stats['chunks']['discarded'] == {}, f'{profd.stats["chunks"]}')
    check(list(profd.output.glob('.*')) == [], 'a part of an envelope is left')


if __name__ == '__main__':
    harness.main(globals())
