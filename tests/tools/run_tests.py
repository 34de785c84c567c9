#!/usr/bin/python3
"""Runs the tests whose names contain PATTERN. Usage: run_tests.py PATTERN TEST...

Prints a line per test with the time that it took and the CPU time of it and of its children
that it waited for, the output of those that fail, and the totals at the end. A test is a
program: status 0 means passed, 77 skipped (its last line says why), anything else failed.
$BUILD/log/NAME has the whole output.

A TEST of the form "DIRECTORY:PATH" runs with $BUILD set to DIRECTORY, and its name
begins with it.

Two tests run at a time for each processor, since tests also wait, or as many as $WORKERS
says. Then the tests whose source has "Runs alone:" and a reason run one by one: they measure
something that others would disturb, or change the whole machine.

With SECOND_TRY=1 a test that fails runs once more, alone; its first output is
printed, too. Its name goes into $BUILD/second_tries, which .ci/run prints at its end. The
last lines name each test that failed, or passed at the second try, with the lines that give
the reason.
"""

import contextlib
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import time

# No test takes a minute on free processors, but a virtual machine may get a
# twentieth of them. The limit ends a test that hangs.
LIMIT_S = int(os.environ.get('LIMIT_S') or 900)
# With LIMIT_S in the environment, for a slow machine: for each of its tests.
TESTS = re.compile(r'^(?:TEST\w*\(|def test_)', re.M) if os.environ.get('LIMIT_S') else None
# From SIGTERM to SIGKILL.
GRACE_S = 10
# The last lines of the output say what failed.
SHOWN_LINES = 60
# Lines of Check, harness.py and Python that give the reason.
REASON = re.compile(r':[FE]:|^FAIL|\w+(Error|Failure|Expired)\b.*:')
REASONS, REASON_CHARS = 3, 400

SKIPPED = 77
ALONE = re.compile('Runs alone: ')

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A command that runs tests for another processor.
RUNNER = os.environ.get('RUNNER', '').split()
BUILD = os.environ.setdefault('BUILD', 'build')
# A test that runs out of memory on purpose is no error of AddressSanitizer.
os.environ['ASAN_OPTIONS'] = 'allocator_may_return_null=1'
os.environ['PYTHONDONTWRITEBYTECODE'] = '1'


class Test:
    """A test program and, while it runs, its process."""

    def __init__(self, path):
        self.name = path.removeprefix(f'{BUILD}/').replace('tests/', '', 1) \
            .replace(':', '/')
        build, _, self.path = path.rpartition(':')
        self.env = dict(os.environ, BUILD=build or BUILD)
        self.log = pathlib.Path(BUILD, 'log', self.name.replace('/', '-'))
        self.again = False
        self.process = self.pidfd = None

    def source(self):
        """The source file, which says whether the test runs alone."""
        found = re.fullmatch(r'.*tests/((?:\w+/)+check_\w+)', self.path)
        return ROOT / (f'tests/unit/{found[1]}.c' if found else self.path)

    def runs_alone(self):
        if self.again:
            return True
        # A fuzz target with its corpus has no source of that name.
        with contextlib.suppress(FileNotFoundError, UnicodeDecodeError):
            return ALONE.search(self.source().read_text()) is not None
        return False

    def count(self):
        with contextlib.suppress(FileNotFoundError, UnicodeDecodeError):
            return len(TESTS.findall(self.source().read_text())) if TESTS else 1
        return 1

    def start(self):
        with open(self.log, 'wb') as log:
            # In a process group of its own, which end() signals as a whole.
            self.process = subprocess.Popen(
                [*RUNNER, os.path.abspath(self.path)], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, process_group=0, env=self.env)
        self.pidfd = os.pidfd_open(self.process.pid)
        self.started = time.monotonic()
        self.limit_s = LIMIT_S * max(1, self.count())
        self.limit = self.started + self.limit_s
        self.asked = False

    def end(self):
        """Sends SIGTERM, or SIGKILL if that was sent before."""
        number = signal.SIGKILL if self.asked else signal.SIGTERM
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)
        self.asked = True
        self.limit = time.monotonic() + GRACE_S

    def has_ended(self):
        pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
        if pid == 0:
            return False
        self.process.returncode = os.waitstatus_to_exitcode(status)
        os.close(self.pidfd)
        self.seconds = time.monotonic() - self.started
        self.cpu_s = usage.ru_utime + usage.ru_stime
        return True

    def lines(self):
        return self.log.read_text(errors='replace').splitlines()

    def show(self):
        for line in self.lines()[-SHOWN_LINES:]:
            print('      |', line)

    def reasons(self):
        found = [line for line in self.lines() if REASON.search(line)]
        return [line[:REASON_CHARS] for line in found[:REASONS]]

    def word(self):
        return {0: 'ok', SKIPPED: 'skip'}.get(self.process.returncode, 'FAIL')

    def note(self):
        status = self.process.returncode
        if status == SKIPPED:
            return f': {"".join(self.lines()[-1:])}'
        if status != 0 and self.asked:
            return f': hangs, ended after {self.limit_s} s'
        return f': status {status}' if status != 0 else ''


def wait(running):
    """Waits until a test has ended or has reached its limit."""
    poll = select.poll()
    for test in running:
        poll.register(test.pidfd, select.POLLIN)
    left = min(test.limit for test in running) - time.monotonic()
    poll.poll(max(0, left) * 1000)
    for test in running:
        if time.monotonic() > test.limit:
            test.end()


def end_all(running):
    """Ends all running tests, and waits for them."""
    for test in running:
        test.end()
    while running:
        wait(running)
        running = [t for t in running if not t.has_ended()]


def run(tests, workers, report):
    """Runs the tests, a number of them at a time. Calls report(test) when one ends."""
    waiting, running = list(reversed(tests)), []
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                test = waiting.pop()
                test.start()
                running.append(test)
            wait(running)
            for test in [t for t in running if t.has_ended()]:
                running.remove(test)
                report(test)
    finally:
        end_all(running)


class Sum:
    """The results of the tests."""

    def __init__(self, second_try):
        self.second_try = second_try
        self.count = {'ok': 0, 'FAIL': 0, 'skip': 0}
        self.again = []
        self.failures = []

    def report(self, test):
        word = test.word()
        if word == 'FAIL' and self.second_try and not test.again:
            test.again = True
            self.again.append(test)
            print(f'FAIL  {test.name}{test.note()}; once more, later')
        else:
            self.count[word] += 1
            print(f'{word:5} {test.name} ({test.seconds:.1f} s, CPU {test.cpu_s:.1f} s)'
                  f'{test.note()}')
        if word == 'FAIL':
            test.show()
            self.failures.append((test.name, test.reasons()))
        sys.stdout.flush()


ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupted(number, _):
    """Ends the run; further signals are ignored while the tests are ended."""
    for n in ENDS:
        signal.signal(n, signal.SIG_IGN)
    sys.exit(128 + number)


def main(pattern, *paths):
    for number in ENDS:
        signal.signal(number, interrupted)
    pathlib.Path(BUILD, 'log').mkdir(exist_ok=True)
    began = time.monotonic()
    tests = [t for t in map(Test, paths) if pattern in t.name]
    if not tests:
        print('no test has such a name')
    workers = int(os.environ.get('WORKERS') or 2 * len(os.sched_getaffinity(0)))
    sums = Sum(os.environ.get('SECOND_TRY') == '1')
    for test in [t for t in tests if not os.access(t.path, os.X_OK)]:
        print(f'FAIL  {test.name}: is not executable')
        sums.count['FAIL'] += 1
        tests.remove(test)
    run([t for t in tests if not t.runs_alone()], workers, sums.report)
    run([t for t in tests if t.runs_alone() and not t.again], 1, sums.report)
    again = list(sums.again)
    run(again, 1, sums.report)
    count = sums.count
    print(f'{count["ok"]} passed, {count["FAIL"]} failed, {count["skip"]} '
          f'skipped, in {time.monotonic() - began:.0f} s')
    if again:
        print(f'{len(again)} were run a second time')
        with open(pathlib.Path(BUILD, 'second_tries'), 'a') as file:
            file.writelines(f'{test.name}: {test.word()} at the second try\n' for test in again)
    for name, reasons in sums.failures:
        print(f'failed: {name}')
        for line in reasons:
            print('      |', line)
    return 0 if count['FAIL'] == 0 and count['ok'] + count['skip'] > 0 else 1


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
