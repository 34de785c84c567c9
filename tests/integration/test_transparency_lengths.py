#!/usr/bin/env python3
"""The waits of a target are as long as without the profiler.

cap_waits has a thread for each kind of call that waits, and measures how long
its calls take. Runs alone, because it measures times.
"""

import subprocess

import harness
from harness import check
from test_transparency_calls import ask, kinds, number

harness.filters_kill()

# The length of a wait, and the pauses between signals during it. An untraced
# thread does not notice these signals. If a traced one began its wait anew at
# each signal, it would never end.
WAIT_US = 200_000
STORM_US = 50_000

# The wait ends at most one tick after its time. capture may have seen its
# begin up to a tick, or up to the first signal, late. The rest is the
# machine's delay.
STORM_MOST_US = 2 * WAIT_US

# These calls have two ways out of their wait, and begin anew in one of them:
# docs/SAFETY.md. Events wake the last two.
SOCKETS = ('sendfile_timeout', 'splice_timeout', 'splice_in_timeout',
           'recv_all_timeout', 'recvmmsg_all_timeout')

# The number of calls of each kind.
LEAST = 5


class Waits:
    """cap_waits, and the names of its waits that end by a timeout."""

    def __init__(self, box, us):
        self.names = [name for name in kinds('cap_waits')
                      if name not in ('wait4', 'waitid')]
        self.timed = self.names[:self.names.index('timerfd')]
        self.target = box.target('cap_waits', str(us), stdin=subprocess.PIPE)

    def lengths(self):
        """Returns the mean, the longest and the number of each kind since the
        last call."""
        lines = ask(self.target, 'lengths', len(self.names))
        return {name: (int(mean), int(longest), int(n))
                for name, mean, longest, n in map(str.split, lines)}

    def wait_for(self, least, names):
        """Waits until this many have ended; returns their lengths."""
        sums = {name: (0, 0, 0) for name in names}

        def enough():
            for name, (mean, longest, n) in self.lengths().items():
                if name not in sums:
                    continue
                mean_, longest_, n_ = sums[name]
                sums[name] = ((mean * n + mean_ * n_) // max(n + n_, 1),
                              max(longest, longest_), n + n_)
            return min(n for _, _, n in sums.values()) >= least
        harness.wait_for(enough, 'a number of waits of each kind')
        return sums


def check_under_signals(box, filtered):
    waits = Waits(box, WAIT_US)
    if filtered:
        ask(waits.target, 'filter')
    timed = [name for name in waits.timed if name not in SOCKETS
             # The kinds that wait for 100 us.
             and not name.endswith('read_only')]
    profd = box.profd([waits.target], '--rate', '101').wait_attached()
    ask(waits.target, f'storm {STORM_US}')
    # The waits that were under way began before.
    waits.wait_for(1, timed)

    def turn():
        found = []
        for name, (mean, longest, n) in waits.wait_for(LEAST, timed).items():
            check(mean >= WAIT_US, f'{name}: {mean} us in the mean of {n}')
            # One wait may be long because of the machine. A wait that begins
            # anew is long each time.
            others = (mean * n - longest) / (n - 1)
            if others >= STORM_MOST_US:
                found.append(f'{name}: {mean} us in the mean of {n}, '
                             f'{longest} at most')
        return found
    harness.in_turns(turn)
    ask(waits.target, 'lull')
    check(number(waits.target, 'eintr') == 0, 'EINTR')
    check(number(waits.target, 'wrong') == 0, 'a wrong result')
    profd.interrupt()
    check(profd.stats['rewritten'] > 0, 'no signal has hit a wait')


def test_under_signals_that_are_ignored(box):
    check_under_signals(box, filtered=False)


def test_under_signals_and_a_filter(box):
    """The filter kills at restart_syscall. Calls that would need it are
    entered again instead."""
    check_under_signals(box, filtered=True)


# Events wake the first one, and capture does not know when that wait began.
MOST = {'recv_all_timeout': 2.25}
MOST_OF_OTHERS = 1.25

# Alternates between with and without the profiler as long as a wait that is
# too long may be due to the machine. A wait that begins anew is too long in
# every attempt.
TURNS_MIN = 4
TURNS_MAX = 20


def test_of_20_ms(box):
    """Each kind, with and without the profiler."""
    waits = Waits(box, 20_000)
    timed = [name for name in waits.timed if not name.endswith('read_only')
             and name != 'recvmmsg_all_timeout']
    without, ours = {}, {}

    def too_long():
        return [f'{name}: {ours[name]} us, {without[name]} without us'
                for name in timed if ours[name] >=
                MOST.get(name, MOST_OF_OTHERS) * without[name]]

    turn = 0
    while turn < TURNS_MIN or (too_long() and turn < TURNS_MAX):
        for into in (without, ours):
            profd = None
            if into is ours:
                profd = box.profd([waits.target], '--rate', '1000')
                profd.wait_attached()
            waits.lengths()
            for name, (mean, _, _) in waits.wait_for(20, timed).items():
                check(mean >= 19_900, f'{name} ended early: {mean} us')
                into[name] = min(mean, into.get(name, mean))
            if profd:
                profd.interrupt()
            turn += 1
    check(number(waits.target, 'wrong') == 0, 'a wrong result')
    check(not too_long(), '\n'.join(too_long()))


if __name__ == '__main__':
    harness.main(globals())
