#!/usr/bin/env python3
"""Debian's chromium writes its crash report while sentry-profd profiles the process that crashes.

The reporter is crashpad's handler (chrome_crashpad_handler), a process that chromium starts and
that all its processes share. A crashing process asks the handler over a socket; the handler attaches
to each thread of it by PTRACE_ATTACH, and gives up if the first attach fails. Sentry's SDK for
native code has the same reporter.
"""

import os
import pathlib
import signal
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / 'tests/integration'))

import harness
from harness import (PATIENCE_S, check, children, environment, in_turns, proc_status, proc_text,
                     threads, wait_for)

# The executable itself, since Debian's script reads the user's settings.
CHROMIUM = os.environ.get('CHROMIUM', '/usr/lib/chromium/chromium')
HANDLER = 'chrome_crashpad_handler'[:15]

# A renderer has nine or more threads, most of which it starts after its handlers of signals.
THREADS_MIN = 8

# Streams of a minidump, and the sizes of their entries (minidumpapiset.h).
THREAD_LIST = 3
EXCEPTION = 6
THREAD_BYTES = 48


class Minidump:
    """threads: {tid: (bytes of its stack, bytes of its registers)}; crashed: its tid and signal."""

    def __init__(self, data):
        magic, _, streams, directory = struct.unpack_from('<4sIII', data)
        check(magic == b'MDMP', f'no minidump: {data[:16]}')
        found = {}
        for i in range(streams):
            kind, _, offset = struct.unpack_from('<III', data, directory + 12 * i)
            found[kind] = offset
        n, = struct.unpack_from('<I', data, found[THREAD_LIST])
        self.threads = {}
        for i in range(n):
            at = found[THREAD_LIST] + 4 + THREAD_BYTES * i
            tid, = struct.unpack_from('<I', data, at)
            self.threads[tid] = struct.unpack_from('<8xII4x', data, at + 24)[:1] + \
                struct.unpack_from('<I4x', data, at + 40)
        tid, number = struct.unpack_from('<I4xI', data, found[EXCEPTION])
        self.crashed = tid, number


class Browser:
    """A chromium without a window whose reports are in a directory of its own."""

    def __init__(self, box):
        self.home = box.make_dir('home')
        self.reports = self.home / '.config/chromium/Crash Reports'
        self.argv = [CHROMIUM, '--headless', '--no-sandbox', '--disable-gpu',
                     '--enable-crash-reporter', '--remote-debugging-port=0',
                     f'--user-data-dir={self.home}/profile', 'about:blank']
        self.env = environment(HOME=str(self.home))

    def start(self, box):
        self.pid = box.start(self.argv, env=self.env).pid
        return self.wait_ready()

    def wait_ready(self):
        wait_for((self.home / 'profile/DevToolsActivePort').exists, 'chromium listens')
        self.renderer = wait_for(self.find_renderer, 'a renderer')
        for pid in (self.pid, self.renderer):
            wait_for(lambda p=pid: int(proc_status(p, 'SigCgt'), 16) >> (signal.SIGSEGV - 1) & 1,
                     f'process {pid} has a handler of SIGSEGV')
            # A report of the first threads alone would show less.
            wait_for(lambda p=pid: len(threads(p)) >= THREADS_MIN, f'threads of process {pid}')
        return self

    def find_renderer(self):
        pids = [self.pid]
        for pid in pids:
            pids += children(pid)
            # A process of the zygote has its arguments in one string.
            if ' --type=renderer ' in proc_text(pid, 'cmdline'):
                return pid
        return None

    def crash(self, pid):
        """Returns the report of a process's crash, or None if chromium's handler has none."""
        before = set(self.reports.glob('*/*.dmp'))
        os.kill(pid, signal.SIGSEGV)
        # The process waits for its report in the handler of the signal.
        wait_for(lambda: not threads(pid) or proc_status(pid, 'State')[:1] == 'Z',
                 f'process {pid} ends')
        new = set(self.reports.glob('*/*.dmp')) - before
        check(len(new) <= 1, f'reports of one crash: {new}')
        return Minidump(new.pop().read_bytes()) if new else None

    def end(self):
        """Ends chromium; the handlers of crashpad end by themselves when it has ended."""
        os.kill(self.pid, signal.SIGTERM)
        wait_for(lambda: not threads(self.pid) or proc_status(self.pid, 'State')[:1] == 'Z',
                 'chromium ends')


def check_report(browser, pid):
    """Crashes the process, and returns its threads whose stack or registers its report lacks.

    Of a thread that starts while the handler works the report may lack the stack, also without a
    profiler: the handler has read the mappings before.
    """
    were = set(threads(pid))
    report = browser.crash(pid)
    check(report, 'the crash has no report')
    tid, number = report.crashed
    check(number == signal.SIGSEGV and tid in report.threads, f'the crash is of {report.crashed}')
    whole = {t for t, sizes in report.threads.items() if 0 not in sizes}
    return sorted(were - whole)


def crash_under_profd(box, which):
    browser = Browser(box).start(box)
    pid = getattr(browser, which)
    profd = box.profd([pid]).wait_attached().wait_looks()
    missing = check_report(browser, pid)
    profd.finish()
    check(profd.chunks, 'the profile up to the crash is lost')
    if which != 'pid':
        browser.end()
    return missing


def test_alone(box):
    """Without a profiler: the reports that the other tests expect."""
    def attempt():
        browser = Browser(box).start(box)
        missing = check_report(browser, browser.renderer)
        return missing + check_report(browser, browser.pid)
    in_turns(attempt)


def test_renderer(box):
    in_turns(lambda: crash_under_profd(box, 'renderer'))


def test_browser(box):
    in_turns(lambda: crash_under_profd(box, 'pid'))


def test_children(box):
    """sentry-profd --children -- chromium: all its processes are profiled."""
    def attempt():
        browser = Browser(box)
        profd = box.profd([], '--children', '--debug', '--', *browser.argv, env=browser.env)
        browser.pid = wait_for(lambda: next((p for p in children(profd.pid) if
                                             proc_text(p, 'cmdline').startswith(CHROMIUM)), None),
                               'sentry-profd has started chromium')
        try:
            browser.wait_ready()
            wait_for(lambda: f'attached to process {browser.renderer}\n' in profd.stderr,
                     'the renderer is profiled')
            return check_report(browser, browser.renderer)
        finally:
            browser.end()
            profd.wait(PATIENCE_S)
    in_turns(attempt)


if __name__ == '__main__':
    harness.main(globals())
