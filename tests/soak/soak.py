#!/usr/bin/python3
"""make soak: long load tests, which make check runs in a short form only. Steps, with the
environment variables that set their length and the defaults:

- KILLS (1000) SIGKILLs to each process of sentry-profd at random moments (kills.py);
- SHIP_KILLS (200) SIGKILLs to ship, with a server that stops and starts;
- SPOOLED (10000) chunks through the spool, at the same time as the other steps;
- STORM_SECONDS (30) of 1,000 threads a second, at 101 and 1,000 Hz, and of 10,000 handled
  signals a second;
- 500 processes of which 50 match; 20 of these are restarted each second for a minute;
- the tests of what a target can notice, repeatedly from new seeds, for MINUTES (10);
- STOPS (100000) at random moments of programs of all kinds, ten installed ones among
  them, whose stacks are compared with those of other unwinders (tests/oracle).

With the defaults this takes 20 to 35 minutes. Each step prints its result, and the last
lines are a summary. After a fault the other steps run; the fault's output has its seed.
The exit status is 1 if there was a fault.
"""

import collections
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).parent
TESTS = HERE.parent / 'integration'
MINUTES = float(os.environ.get('MINUTES') or 10)

AT_LENGTH = ('transparency_calls', 'transparency_parts', 'life_signals',
             'life_jobs', 'life_execs', 'life_family', 'life_odd', 'life_rights',
             'job_control', 'let_go', 'other_tracers', 'lifecycle')

RESULT = re.compile(r'(ok|skip|FAIL) +(test_\w+) \(([\d.]+) s\)')


class Soak:
    def __init__(self):
        self.start = time.monotonic()
        self.results = collections.Counter()
        self.faults = []
        self.figures = []

    def minutes(self):
        return (time.monotonic() - self.start) / 60

    def say(self, text):
        print(f'{self.minutes():5.1f} min  {text}', flush=True)

    def take_line(self, name, line):
        found = RESULT.match(line)
        if line.startswith('{'):
            self.figures.append(json.loads(line))
            return
        if found:
            self.results[found[1]] += 1
        if found and found[1] == 'FAIL':
            self.faults.append(f'{name}: {line}')
        if not found or found[1] != 'ok':
            print(f'           {line}', flush=True)

    def faults_of(self, script):
        return sum(f.startswith(f'{script.name}:') for f in self.faults)

    def run(self, script, **env):
        """Runs a step, and shows its output at once."""
        began = time.monotonic()
        before = self.faults_of(script)
        step = subprocess.Popen(
            [sys.executable, script], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=dict(os.environ, PYTHONDONTWRITEBYTECODE='1', **env))
        for line in step.stdout:
            self.take_line(script.name, line.rstrip('\n'))
        status = step.wait()
        if status not in (0, 77) and self.faults_of(script) == before:
            self.faults.append(f'{script.name}: status {status}')
        word = 'ok' if self.faults_of(script) == before else 'FAULT'
        self.say(f'{script.name}: {word} ({time.monotonic() - began:.0f} s)')

    def summary(self):
        self.say('summary')
        for figures in self.figures:
            print('  ' + ', '.join(f'{k} {v}' for k, v in figures.items()))
        print('  tests: ' +
              ', '.join(f'{k} {v}' for k, v in self.results.items()))
        for fault in self.faults:
            print(f'  {fault}')
        print('nothing was harmed' if not self.faults else
              f'{len(self.faults)} faults')


def main():
    soak = Soak()
    storm_s = os.environ.get('STORM_SECONDS') or '30'
    soak.run(HERE / 'kills.py')
    # This step takes a quarter of an hour, most of it pauses, so it runs beside the others.
    spool = threading.Thread(target=soak.run, args=(HERE / 'spool.py',))
    spool.start()
    soak.run(TESTS / 'test_delivery_kills.py',
             SHIP_KILLS=os.environ.get('SHIP_KILLS') or '200')
    soak.run(TESTS / 'test_life_storm.py', STORM_SECONDS=storm_s)
    soak.run(TESTS / 'test_life_signal_storm.py', STORM_SECONDS=storm_s)
    soak.run(TESTS / 'test_many_processes.py', PROCESSES='500',
             RESTARTS='1200', A_TIME='20', PACE_S='1')
    # With a seed in the environment all repetitions would be the same.
    os.environ.pop('SEED', None)
    end = soak.minutes() + MINUTES
    for name in itertools.cycle(AT_LENGTH):
        if soak.minutes() >= end:
            break
        soak.run(TESTS / f'test_{name}.py')
    soak.run(HERE.parent / 'oracle/differ.py',
             STOPS=os.environ.get('STOPS') or '100000', LEAST='10')
    spool.join()
    soak.summary()
    sys.exit(1 if soak.faults else 0)


if __name__ == '__main__':
    main()
