"""The program tests/targets/progress.c, whose threads show their progress."""

import struct

import harness
from harness import Failure, check, proc_status, threads, wait_for

class Progress:
    def __init__(self, box, busy=4, **options):
        self.path = box.make_dir('progress') / 'counters'
        self.program = box.target('progress', self.path, busy, **options)
        self.pid = self.program.pid

    def counters(self):
        data = self.path.read_bytes()
        return struct.unpack(f'{len(data) // 8}Q', data)

    def check_going_on(self):
        """Checks that each thread makes progress, and that the waiting one is
        not stopped.
        """
        before = self.counters()

        def all_advance():
            return all(b > a + 3 for a, b in zip(before, self.counters()))
        try:
            wait_for(all_advance, '')
            wait_for(lambda: harness.state(self.pid) not in 'tT', '')
        except Failure:
            check(self.program.running(),
                  f'the target has ended: {self.program.report()}')
            raise Failure(f'the target stands still: {before}, then '
                          f'{self.counters()}, {self.describe()}') from None

    def describe(self):
        return ', '.join(
            f'{tid} {proc_status(tid, "Name")}: '
            f'{proc_status(tid, "State")}, '
            f'tracer {proc_status(tid, "TracerPid")}'
            for tid in threads(self.pid))

    def check_untouched(self):
        """Checks that the process is not traced, and that no thread is
        stopped."""
        def is_free():
            return all(harness.tracer(tid) == 0 and
                       harness.state(tid) not in 'tT'
                       for tid in threads(self.pid))
        try:
            wait_for(is_free, '')
        except Failure:
            raise Failure(f'not left alone: {self.describe()}') from None
