#!/usr/bin/python3
"""The progress line on a terminal while the daemon runs."""

import re
import sys

import harness
from harness import check, wait_for

# Runs the program with standard input, output and error on a terminal of its
# own.
ON_TERMINAL = [sys.executable, '-c', """
import os, pty, sys
pid, master = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
try:
    while data := os.read(master, 65536):
        os.write(1, data)
except OSError:
    pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""]
LINE = r'(\d+) s, (\d+) threads?, (\d+) samples, (\d+) missed, (\d+) chunks?' \
       '\x1b\\[K[\r\n]'


def lines(program):
    return [[int(n) for n in m] for m in re.findall(LINE, program.stdout)]


def test_on_a_terminal(box):
    target = box.target('shares')
    directory = box.make_dir('profd')
    profd = box.start([*ON_TERMINAL, harness.BUILD / 'sentry-profd', '--pid',
                       target.pid, '--chunk-seconds', '1', '--output',
                       directory / 'out'])
    # The line shows two threads, and growing numbers of samples and chunks.
    wait_for(lambda: any(line[1] == 2 and line[2] > 0 and line[4] > 1
                         for line in lines(profd)), 'lines that count')
    seen = lines(profd)
    check(all(a <= b for line, following in zip(seen, seen[1:])
              for a, b in zip(line[2:], following[2:])), f'{seen}')
    target.end()
    check(profd.wait() == 0, profd.report())
    # The line is removed before the table.
    end = profd.stdout.rpartition(' chunk')[2]
    check(re.match('s?\x1b\\[K[\r\n]\x1b\\[K', end) and 'busy_seventy' in end,
          f'{end!r}')


def test_elsewhere(box):
    """There is no progress line in a file, nor with --quiet."""
    target = box.target('shares')
    directory = box.make_dir('profd')
    run = box.profile([target], work=0.2)
    check('missed' not in run.stderr and '\x1b' not in run.stderr, run.stderr)
    profd = box.start([*ON_TERMINAL, harness.BUILD / 'sentry-profd', '--pid',
                       target.pid, '--chunk-seconds', '1', '--quiet',
                       '--output', directory / 'out'])
    wait_for(lambda: len(list((directory / 'out').glob('*.envelope'))) > 1,
             'chunks')
    target.end()
    check(profd.wait() == 0 and 'missed' not in profd.stdout, profd.report())


if __name__ == '__main__':
    harness.main(globals())
