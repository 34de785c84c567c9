"""Faults: in each of many lives of the daemon, one system call of one of its
processes fails once, with an error that Linux may give.

A life is short and has everything (fault_life.py): the daemon finds and
profiles two processes, chunks arrive at a server or go into the spool, the
configuration is reloaded, one of the processes executes a program and ends, and
the daemon is told to end. The first lives only count the system calls of each
process (tests/targets/faults.c). The storm makes all pairs of a call and an
error (errnos.py) and draws their order and, for each pair, which of the equal
calls of a life fails. Several lives run side by side, since a life mostly waits.
Some lives have a lack instead (lacks.py).

Each life checks:

- The daemon goes on, and a further chunk of the unharmed process arrives. Or
  the daemon ends with an error status and a line that says why.
- No process prints a fault, dies by a signal of its own, or hangs, and no child
  is replaced except the one whose call fails.
- The unharmed process (tests/targets/unharmed.c, of another user), which is
  profiled throughout, gets all its signals and right results. In the end it is
  neither traced nor stopped.
- In the statistics, expected samples are those taken and missed, and made
  chunks are those sent, spooled and discarded. If the fault is none of capture
  or unwind and no child was replaced, the unharmed process has at least half of
  the samples of all ticks and threads.

Sanitizers make some calls themselves and end the process if these fail, so the
calls of PLAIN fail only in executables without sanitizers.

Variables of the environment: ONLY=REGEX, only lives whose name has a match
("unwind poll ENOMEM"); LOG=FILE, one line for each life; FAILURES=N, the storm
ends at the Nth failure instead of the first.
"""

import collections
import os
import re
import time

import errnos
import harness
import lacks
import stranger
from envelopes import KEY, PROJECT
from fault_life import Counting, Failing
from harness import BUILD, Failure, Skip, check

SHORT_S = 8

# Lives at a time, and failures that end the storm.
LIVES = 6
FAILURES = int(os.environ.get('FAILURES', '1'))
# A call that was not made as often as drawn is tried again with half of that.
TRIES = 4
POLL_S = 0.01
# The share of lives with a lack.
LACKS = 0.1

# A storm of this length has lives of all kinds.
ALL_KINDS_S = 60

PROCESSES = ('broker', 'helper', 'capture', 'unwind', 'ship')
# Calls that sanitizers make.
PLAIN = ('mmap', 'brk', 'mremap', 'munmap', 'mprotect', 'madvise', 'prlimit64',
         'sched_getaffinity', 'sigaltstack')

Pair = collections.namedtuple('Pair', 'process call request error number')


def executable(plain=False):
    """plain: without sanitizers, where there is such a build, too."""
    path = BUILD.parent / 'sentry-profd'
    return path if plain and BUILD.name == 'asan' and path.exists() else \
        BUILD / 'sentry-profd'


class Storm:
    def __init__(self, box, rng):
        self.box, self.rng = box, rng
        self.only = re.compile(os.environ.get('ONLY', ''))
        self.log = open(os.environ.get('LOG', os.devnull), 'a',
                        encoding='utf-8')
        self.server = box.server(tls=False)
        self.port = harness.free_port()
        self.figures = collections.Counter()
        self.failures = []
        self.queue = []
        self.done = set()
        self.skipped = set()

    def arguments(self, name, plain, is_spooled):
        """Of a life."""
        port = self.port if is_spooled else self.server.port
        dsn = f'http://{KEY}@127.0.0.1:{port}/{PROJECT}'
        return self.box, name, executable(plain), dsn, is_spooled

    # The lives.

    def side_by_side(self, next_life, done):
        """Runs the lives that next_life() returns, until it returns None while
        no other runs; done(life) is called at the end of each."""
        running = []
        try:
            while True:
                while len(running) < LIVES and (life := next_life()):
                    running.append((life, life.run()))
                if not running:
                    return
                for one in tuple(running):
                    if not self.goes_on(*one):
                        running.remove(one)
                        done(one[0])
                        one[0].end()
                check(len(self.failures) < FAILURES, '\n'.join(self.failures))
                time.sleep(POLL_S)
        finally:
            for life, _ in running:
                life.end()

    def goes_on(self, life, steps):
        try:
            next(steps)
            return True
        except StopIteration:
            pass
        except Skip as e:
            life.outcome = f'skipped: {e}'
            self.skipped.add(life.name)
        except Failure as e:
            life.outcome = f'FAILED: {e}'
            self.failures.append(f'{life.name}: {e}\n{life.text()}')
        return False

    def note(self, life):
        lines = ' | '.join(life.profd.stderr.splitlines()) \
            if life.profd else ''
        seconds = time.monotonic() - life.began
        self.log.write(f'{life.name}: {life.outcome}: {seconds:.1f} s: '
                       f'{lines}\n')
        self.log.flush()
        self.figures[life.outcome] += 1

    # The pairs.

    def count(self, all_kinds):
        """Fills self.counts: {(plain, is_spooled): {(process, call, request):
        times}}. Not all_kinds: of one kind of life."""
        lives = {}
        for plain in (False, True):
            for is_spooled in (False, True):
                if plain and executable() == executable(plain=True) or \
                        (plain or is_spooled) and not all_kinds:
                    continue
                lives[plain, is_spooled] = Counting(*self.arguments(
                    'count', plain, is_spooled))
        left = list(lives.values())
        self.side_by_side(lambda: left.pop() if left else None, self.note)
        check(not self.failures, '\n'.join(self.failures))
        if self.skipped:
            raise Skip(lives[False, False].outcome)
        self.counts = {which: life.counts for which, life in lives.items()}

    def find_pairs(self):
        """Returns {pair: [(plain, is_spooled, times)]}: the lives that have
        this call."""
        found = collections.defaultdict(list)
        for (plain, is_spooled), counts in self.counts.items():
            for (process, call, request), times in counts.items():
                if process not in PROCESSES or (
                        not plain and executable() != executable(plain=True)
                        and call in PLAIN):
                    continue
                name = errnos.name_of(call, request)
                errors = errnos.errors_of(process, name)
                if errors is None:
                    self.figures[f'not in errnos.py: {name}'] = 1
                for error, number in errors or ():
                    pair = Pair(process, call, request, error, number)
                    found[pair].append((plain, is_spooled, times))
        return found

    def draw(self, found):
        """Fills the queue: (pair, plain, is_spooled, N, tries)."""
        pairs = list(found)
        self.rng.shuffle(pairs)
        for pair in pairs:
            lives = [l for l in found[pair] if not l[0]] or found[pair]
            plain, is_spooled, times = self.rng.choice(lives)
            # The first calls of a life differ more than the last ones.
            n = round(times ** self.rng.uniform(0, 1))
            self.queue.append((pair, plain, is_spooled, n, TRIES))
        self.figures['pairs of a call and an error'] = len(pairs)

    def next_lack(self):
        cls, process, plain = self.rng.choice(lacks.ALL)
        name = f'{cls.__name__} of {process}'
        if not self.only.search(name) or name in self.skipped:
            return None
        return cls(*self.arguments(name, plain, process == 'spool' or
                                   self.rng.random() < 0.5),
                   process=process, rng=self.rng)

    @staticmethod
    def name(pair, n, is_spooled):
        call = errnos.name_of(pair.call, pair.request)
        if call == pair.call and pair.request != '-':
            call += f' {pair.request}'
        where = ' without a server' if is_spooled else ''
        return f'{pair.process} {call} {pair.error} at call {n}{where}'

    def next_life(self):
        while self.queue and time.monotonic() < self.end:
            if self.rng.random() < LACKS and (life := self.next_lack()):
                return life
            pair, plain, is_spooled, n, tries = drawn = self.queue.pop(0)
            name = self.name(pair, n, is_spooled)
            if self.only.search(name):
                life = Failing(*self.arguments(name, plain, is_spooled),
                               rule=(pair.process, pair.call, pair.request, n,
                                     pair.number))
                life.drawn = drawn
                return life
        return None

    def life_done(self, life):
        if isinstance(life, Failing):
            self.pair_done(life)
        elif life.failed():
            self.figures[f'lack: {life.name}'] += 1
        self.note(life)

    def pair_done(self, life):
        pair, plain, is_spooled, n, tries = life.drawn
        if life.failed():
            self.done.add(pair)
            self.figures[f'pairs of {pair.process}'] += 1
        elif not life.outcome.startswith('FAILED'):
            life.outcome = 'the call is not made as often'
            if tries > 1:
                self.queue.insert(0, (pair, plain, is_spooled, max(1, n // 2),
                                      tries - 1))


def run(box, seconds, rng):
    stranger.need_root()
    storm = Storm(box, rng)
    storm.count(seconds >= ALL_KINDS_S)
    storm.draw(storm.find_pairs())
    storm.end = time.monotonic() + seconds
    storm.side_by_side(storm.next_life, storm.life_done)
    check(not storm.failures, '\n'.join(storm.failures))
    return storm.figures
