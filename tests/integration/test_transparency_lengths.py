#!/usr/bin/env python3
"""Waits of a target take as long as they do without us.

cap_waits has a thread for each kind of call that waits, and measures how long
its calls take.

Runs alone: it measures how long calls take.
"""

import subprocess

import harness
from harness import check
from test_transparency_calls import ask, kinds, number

# A wait, and the pauses between the signals that come during it: without us
# they are not noticed, and with us it would never end if its time began anew at
# each.
WAIT_US = 200_000
STORM_US = 50_000

# It ends a tick after its time at the latest, and may have begun up to a tick,
# or up to the first signal, before we knew of it; the rest is the machine's.
STORM_MOST_US = 2 * WAIT_US

# These come out of their waits in two ways, and begin anew in one of them:
# docs/SAFETY.md. What comes meanwhile wakes the last two.
SOCKETS = ('sendfile_timeout', 'splice_timeout', 'splice_in_timeout',
           'recv_all_timeout', 'recvmmsg_all_timeout')

# Some calls of each kind.
LEAST = 5


class Waits:
    """cap_waits, and the names of its waits that end by a timeout."""

    def __init__(self, box, us):
        self.names = [name for name in kinds('cap_waits')
                      if name not in ('wait4', 'waitid')]
        self.timed = self.names[:self.names.index('timerfd')]
        self.target = box.target('cap_waits', str(us), stdin=subprocess.PIPE)

    def lengths(self):
        """Mean, longest and number for each since the last time."""
        lines = ask(self.target, 'lengths', len(self.names))
        return {name: (int(mean), int(longest), int(n))
                for name, mean, longest, n in map(str.split, lines)}

    def wait_for(self, least, names):
        """Until so many of these have ended; returns their lengths."""
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
             # Those that wait for 100 us.
             and not name.endswith('read_only')]
    profd = box.profd([waits.target], '--rate', '101').wait_attached()
    ask(waits.target, f'storm {STORM_US}')
    # Those that were under way began before it.
    waits.wait_for(1, timed)

    def turn():
        found = []
        for name, (mean, longest, n) in waits.wait_for(LEAST, timed).items():
            check(mean >= WAIT_US, f'{name}: {mean} us in the mean of {n}')
            # One may have waited for the machine; who begins anew does each
            # time.
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
    """It kills for restart_syscall: what needs that is run again instead."""
    check_under_signals(box, filtered=True)


# What comes meanwhile wakes the first, and when that began is not known before.
MOST = {'recv_all_timeout': 2.25}
MOST_OF_OTHERS = 1.25

# With us and without, in turns, as long as the machine's own scatter may be the
# reason why one is too long: a wait that begins anew is so in every turn.
TURNS_MIN = 4
TURNS_MAX = 20


def test_of_20_ms(box):
    """Each kind, with us and without."""
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
