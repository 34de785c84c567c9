"""Crash: profiled programs crash in every way, and each crash report is complete.

In each round a daemon profiles some programs (tests/targets/crash.c) with options drawn from
the seed: the signal and its sender, the way of reporting, the threads, the stack, survivals. Some
crash as soon as they are traced, some two at once. The daemon is given their pids, or starts
them, or finds them; it runs at 101 or 997 Hz. Beside them are other targets: one counts the
progress of its threads, and one has all its threads in system calls that are resumed, or in
waits.

Each program has its report, with each thread of the process, ends with the right exit status,
and finds no call that failed or ended early. The other targets stay attached, and no call of
theirs returns another result. Samples add up.

THREADS=N,N... in the environment sets the numbers of threads that are drawn, instead of 1 to 50
and, every few rounds, 1,000.
"""

import collections
import os
import shutil
import subprocess
import time

import crashes
import harness
from account import check_sums
from control import Control
from harness import Failure, check, wait_for
from progress import Progress
from service import Service
from test_transparency_calls import check_calls, kinds
from test_transparency_parts import check_calls as check_parts

SHORT_S = 3

RATES = (101, 997)
# The sizes of programs, one of which is drawn.
GIVEN = os.environ.get('THREADS')
SIZES = tuple(map(int, (GIVEN or '1,1,2,5,50,50,50,50').split(',')))
# Once in so many rounds there is one program with so many threads.
MANY, MANY_ROUNDS = 1000, 4
PROGRAMS = (2, 10)
# No program is added to so many threads of a round: capture attaches to them one by one.
THREADS_OF_ROUND = 1000
# Waits of 100 us.
WAIT_US = 100
# Runs a command as a child.
SHELL = '"$@"; exit $?'


class Replaced(Exception):
    """The broker has replaced a capture without a heartbeat, as happens on a machine that has no
    processor for it. The new capture leaves out the target that the old one was at."""


def median(values):
    return sorted(values)[len(values) // 2] if values else 0


class Others:
    """Targets that do not crash."""

    def __init__(self, box, rng):
        self.progress = Progress(box, 2)
        self.programs = [self.progress.program]
        self.checks = []
        what = rng.choice(('parts', 'waits', 'all waits', 'none'))
        if what == 'parts':
            name = rng.choice(kinds('cap_whole'))
            self.add(box, lambda p: check_parts(p, 1), 'cap_whole', name)
        elif what == 'waits':
            name = rng.choice(kinds('cap_waits'))
            self.add(box, lambda p: check_calls(p, 1), 'cap_waits', WAIT_US, name)
        elif what == 'all waits':
            n = len(kinds('cap_waits')) - 2
            self.add(box, lambda p: check_calls(p, n), 'cap_waits', WAIT_US)

    def add(self, box, check_it, *argv):
        program = box.target(*argv, stdin=subprocess.PIPE)
        self.programs.append(program)
        self.checks.append((program, check_it))

    def pids(self):
        return [p.pid for p in self.programs]

    def check_whole(self):
        self.progress.check_going_on()
        for program, check_it in self.checks:
            check_it(program)

    def check_traced(self):
        for pid in self.pids():
            check(all(harness.tracer(t) for t in harness.threads(pid)),
                  f'the other target {pid} was left')

    def end(self):
        for program in self.programs:
            program.end()


class Storm:
    def __init__(self, box, rng):
        self.box, self.rng = box, rng
        self.figures = collections.Counter()
        self.handler_us = []
        self.finds = False # the daemon finds its targets

    # One program.

    def draw(self, threads=None):
        rng = self.rng
        options = crashes.draw(rng, threads or rng.choice(SIZES))
        if rng.random() < 0.15 and 'survive' not in options and options['by'] != 'outside':
            options['go'] = 'traced'
        return options

    def start(self, options, exe=crashes.EXE):
        self.options = options
        return crashes.start(self.box, exe=exe, **options)

    def note(self, text, options):
        n = len(crashes.reports(text))
        self.figures['crashes'] += n
        self.figures[f'crashes with {options["threads"]} threads'] += n
        self.handler_us += [r['handler_us'] for r in crashes.reports(text)]

    def check_end(self, program):
        # The daemon finds long-lived reporters, too, if its configuration matches the program.
        crashes.check_end(program, traced_reporter=self.finds)
        self.figures['calls that an ignored signal ended'] += len(crashes.interrupted(program))
        self.note(program.stdout, program.options)
        self.box.programs.remove(program)

    def crash(self, programs):
        """Makes all crash, one after the other or two at once."""
        programs = list(programs)
        while programs:
            n = 2 if self.rng.random() < 0.3 else 1
            now, programs = programs[:n], programs[n:]
            for program in now:
                crashes.trigger(program)
            for program in now:
                crashes.follow(program)
                self.check_end(program)

    # Rounds.

    def many(self):
        """Returns how many threads one program of this round has; None: as any."""
        self.figures['rounds'] += 1
        is_many = GIVEN is None and self.figures['rounds'] % MANY_ROUNDS == 0
        return MANY if is_many else None

    def started(self, exe=crashes.EXE):
        many, programs = self.many(), []
        n = 1 if many else self.rng.randint(*PROGRAMS)
        while len(programs) < n and sum(p.options['threads'] for p in programs) < THREADS_OF_ROUND:
            programs.append(self.start(self.draw(many), exe))
        return programs

    def settle(self, profd, traced):
        """Waits until the daemon profiles all that do not crash by themselves."""
        def all_traced():
            check(profd.running(), f'{profd.stderr}')
            if 'shows no heartbeat' in profd.stderr:
                raise Replaced
            return all(harness.tracer(t) for pid in traced for t in harness.threads(pid))
        wait_for(all_traced, 'all targets are traced')
        if self.rng.random() < 0.7:
            profd.wait_looks(self.rng.randint(1, 40))

    def round_by_pid(self, others):
        programs = self.started()
        profd = self.box.profd([*programs, *others.pids()], '--rate',
                               self.rng.choice(RATES), '--chunk-seconds', '1')
        self.crash_under(profd, programs, others)
        profd.interrupt()
        return profd

    def crash_under(self, profd, programs, others):
        by_line = [p for p in programs if p.options.get('go') != 'traced']
        self.settle(profd, [p.pid for p in by_line] + others.pids())
        self.crash(by_line)
        for program in programs:
            if program not in by_line:
                self.check_end(program)
        others.check_whole()
        others.check_traced()

    def round_of_service(self, others):
        box, rng = self.box, self.rng
        exe = box.make_dir('bin') / 'crash'
        shutil.copy(crashes.EXE, exe)
        service = Service(box, {'web': {'exe': exe}}, '--rate', rng.choice(RATES))
        control = Control(box, service.dir / 'socket')
        for pid in others.pids():
            control.run('attach', pid)
        self.finds = True
        for _ in range(rng.randint(1, 3)):
            self.crash_under(service.profd, self.started(exe), others)
        return service.stop()

    def round_of_command(self, others):
        """The others are not profiled."""
        options = self.draw(self.many())
        options.update({'go': self.rng.choice(('now', 'line', 'traced')), 'survive': 0})
        if options['by'] == 'outside':
            options['by'] = 'raise'
        if options['end'] == 'on':
            options['end'] = 'raise'
        self.options = options
        is_shell = self.rng.random() < 0.5
        profd = self.box.profd(
            [], '--rate', self.rng.choice(RATES), *['--children'] * is_shell, '--',
            *['sh', '-c', SHELL, 'sh'] * is_shell, crashes.EXE,
            *crashes.arguments(options), stdin=subprocess.PIPE)
        if options['go'] == 'line':
            pid = int(profd.wait_line(r'ready (\d+)')[1])
            wait_for(lambda: all(harness.tracer(t) for t in harness.threads(pid)), 'it')
            profd.process.stdin.write(b'\n')
            profd.process.stdin.flush()
        ended = profd.wait()
        status = crashes.status(options)
        status = 128 - status if status < 0 else status
        check(ended == status, f'exit status {ended}, not {status}: {profd.report()}')
        found = crashes.reports(profd.stdout)
        # A helper that is a child is profiled, too.
        check(len(found) == 1 and crashes.is_complete(found[0]), f'{found}')
        check('wrong: ' not in profd.stderr, profd.stderr)
        self.note(profd.stdout, options)
        others.check_whole()
        return profd

    def one_round(self):
        others = Others(self.box, self.rng)
        self.finds = False
        kind = self.rng.choice((self.round_by_pid, self.round_by_pid, self.round_of_service,
                                self.round_of_command))
        before = len(self.box.programs)
        try:
            profd = kind(others)
        except Replaced:
            self.figures['rounds given up, as capture was replaced'] += 1
            for program in reversed(self.box.programs[before:]):
                program.end()
            del self.box.programs[before:]
            others.end()
            return
        except Failure as e:
            raise Failure(f'{kind.__name__}: {e}; the last program: '
                          f'{" ".join(crashes.arguments(self.options))}') from e
        check_sums(profd.stats, arrived='written')
        self.figures['samples taken'] += profd.stats['samples_taken']
        self.figures['left to the crash traced'] += profd.stderr.count('could not detach')
        others.check_whole()
        others.progress.check_untouched()
        others.end()
        for program in (*others.programs, profd):
            if program in self.box.programs:
                self.box.programs.remove(program)


def run(box, seconds, rng):
    storm = Storm(box, rng)
    end = time.monotonic() + seconds
    try:
        while storm.figures['rounds'] < MANY_ROUNDS or time.monotonic() < end:
            storm.one_round()
    except Failure as e:
        raise Failure(f'{e}; after {dict(storm.figures)}') from e
    storm.figures['us from a fault to the handler, median'] = median(storm.handler_us)
    storm.figures['us from a fault to the handler, at most'] = max(storm.handler_us)
    return storm.figures
