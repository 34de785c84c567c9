"""The program tests/targets/crash.c, which crashes and checks its own crash
report: its options, and what its lines must say."""

import os
import re
import signal
import subprocess

from harness import BUILD, check
from service import tell

SIGNALS = ['SEGV', 'BUS', 'ILL', 'ABRT', 'TRAP', 'SYS']
# aarch64 divides by zero without a signal.
if os.uname().machine != 'aarch64':
    SIGNALS.append('FPE')
WAYS = ('fork', 'clone', 'helper')
READS = ('vm', 'mem', 'peek')
BESIDE = ('children', 'vfork', 'births', 'winch')

EXE = BUILD / 'targets/crash'

REPORT = re.compile(r'^report (\d+): (.*)$', re.M)


def number(name):
    return signal.Signals[f'SIG{name}'].value


def arguments(options):
    return [f'{name}={value}' for name, value in options.items()]


def reports(text):
    """Returns the reports of its stdout: [{'threads': 50, 'attached': 50, ...}]."""
    found = []
    for n, words in REPORT.findall(text):
        words = words.split()
        found.append({'n': int(n), **{k: int(v) for k, v in zip(words[::2], words[1::2])}})
    return found


def is_complete(report):
    """Returns true if a report has each thread, and the crashed thread's stack
    at the fault. 'odd' does not count: stops for a signal."""
    n = report['threads']
    return n > 0 and report['failed'] == 0 and report['crashed'] == 1 and \
        all(report[what] == n for what in ('attached', 'registers', 'stacks'))


def check_reports(text, options, n=None, traced=False):
    """Checks that there are n reports (None: one for each crash), and that all
    are complete, by a reporter that nobody traced. traced: unless it is a target
    of its own, as a long-lived one may be."""
    found = reports(text)
    if n is None:
        n = crashes(options) if options.get('way') != 'none' else 0
    check(len(found) == n, f'{len(found)} reports, not {n}: {text}')
    for report in found:
        check(report['threads'] == int(options.get('threads', 1)) and is_complete(report),
              f'the report lacks something: {report}, {" ".join(arguments(options))}')
        check(report['traced'] == 0 or (traced and options['way'] == 'helper'),
              f'the reporter is traced: {report}')


def crashes(options):
    """Returns how often the program crashes."""
    return int(options.get('survive', 0)) + (options.get('end') != 'on')


def start(box, exe=EXE, **options):
    """Starts a program that crashes when trigger() says so, or when it is traced."""
    options.setdefault('threads', 50)
    program = box.start([exe, *arguments(options)], stdin=subprocess.PIPE)
    program.options = options
    program.wait_line(r'ready \d+')
    return program


def trigger(program):
    """Makes the program crash."""
    options = program.options
    if options.get('go', 'line') == 'line':
        tell(program, '')
    if options.get('by') == 'outside':
        os.kill(program.pid, number(options['signal']))


def follow(program):
    """After the first crash: makes the program crash as often as it is to, one
    crash after the other."""
    options = program.options
    for n in range(1, crashes(options)):
        program.wait_line(f'survived {n}')
        trigger(program)
    if options.get('end') == 'on':
        program.wait_line(f'survived {crashes(options)}')
        program.process.stdin.close()


def interrupted(program):
    """Returns its calls that failed because an ignored signal woke their thread,
    and another thread took the signal. That happens to traced processes
    (docs/SAFETY.md), and not often."""
    return re.findall('^interrupted: (.*)$', program.stderr, re.M)


def check_end(program, traced_reporter=False):
    """Checks how the program has ended, its reports, and that its calls found
    nothing wrong."""
    options = program.options
    ended = program.wait()
    check(ended == status(options), f'exit status {ended}: {program.report()}')
    check_reports(program.stdout, options, traced=traced_reporter)
    wrong = [l for l in program.stderr.splitlines() if not l.startswith('interrupted: ')]
    check(wrong == [], f'{program.stderr} {" ".join(arguments(options))}')


def crash(program):
    trigger(program)
    follow(program)
    check_end(program)


def status(options):
    """Returns its exit status, as of subprocess: negative for a signal."""
    if options.get('end', 'raise') == 'raise':
        return -number(options.get('signal', 'SEGV'))
    return int(options.get('status', 0))


def draw(rng, threads):
    """Draws options that go together. Who needs more threads, has them."""
    o = {'threads': threads, 'signal': rng.choice(SIGNALS), 'way': rng.choice(WAYS),
         'attach': rng.choice(('attach', 'seize')), 'read': rng.choice(READS),
         'by': rng.choice(('fault', 'fault', 'fault', 'raise', 'thread', 'outside')),
         'stack': rng.choice(('own', 'alt')), 'nodefer': rng.choice((0, 0, 1)),
         'calm': rng.choice((0, 1)), 'stops': rng.choice((0, 0, 0, 1)),
         'end': rng.choice(('raise', 'raise', 'exit'))}
    room = threads - 1
    if room > 0 and rng.random() < 0.5:
        o['who'] = 'other'
        room -= 1
    if o['by'] == 'thread':
        if room < 1:
            o['by'] = 'raise'
        else:
            room -= 1
    if room > 0 and rng.random() < 0.4:
        o['beside'] = rng.choice(BESIDE)
        room -= 1
    if o['by'] == 'fault' and o['signal'] == 'SEGV' and rng.random() < 0.3:
        o['stack'] = 'overflow'
    elif o['by'] == 'fault' and room > 0 and rng.random() < 0.15:
        o['crashers'] = 2
    if rng.random() < 0.25:
        draw_survival(rng, o)
    if o['end'] == 'exit' or o['end'] == 'on':
        o['status'] = rng.randrange(126)
    return o


def draw_survival(rng, o):
    o['survive'] = rng.randrange(1, 4)
    o['end'] = rng.choice(('on', 'raise', 'exit'))
    can_jump = o['by'] in ('fault', 'raise')
    can_return = o['stack'] != 'overflow' and (o['signal'], o['by']) != ('ABRT', 'fault')
    o['how'] = rng.choice(['jump'] * can_jump + ['return'] * can_return)
