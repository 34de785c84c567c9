"""Programs whose behaviour POSIX and Linux define (tests/targets/life.h), run
without the daemon and under it. The results must be the same.
"""

import subprocess

import harness
from account import check_sums
from harness import BUILD, Failure, check

# The default and the highest rate.
RATES = (101, 1000)


def start(box, name, *args, **options):
    """Starts a program that waits for the command to begin."""
    options.setdefault('stdin', subprocess.PIPE)
    program = box.start([BUILD / 'targets' / name, *args], **options)
    program.wait_line(r'ready \d+')
    return program


def begin(program):
    program.process.stdin.write(b'\n')
    program.process.stdin.flush()


def transcript(program):
    """Returns its output, after it has ended without an error."""
    status = program.wait()
    if status != 0:
        raise Failure(f'{program.name} has seen something wrong: '
                      f'{program.report()}')
    return [l for l in program.stdout.splitlines()
            if not l.startswith('ready ')]


def check_quiet(profd):
    """Checks that the daemon logged no problem. Exception: programs that
    execute themselves all the time, which are logged.
    """
    lines = [l for l in profd.stderr.splitlines()
             if 'one program after another' not in l]
    check(lines == [], f'{lines}')


def check_profd(profd):
    """Checks that the daemon ended without an error, and took samples."""
    profd.finish()
    check_quiet(profd)
    check_sums(profd.stats, arrived='written')
    check(profd.stats['samples_taken'] > 0, f'no samples: {profd.stats}')


def profiled(box, program, rate, more=()):
    """Profiles a waiting program from its beginning to its end. The programs
    handle crash signals in ordinary work, and have no crash reporter."""
    profd = box.profd([program], '--rate', rate, '--on-crash', 'stay',
                      *more).wait_attached()
    begin(program)
    lines = transcript(program)
    check_profd(profd)
    return lines, profd


def check_same(alone, under, rate):
    if alone == under:
        return
    for i, (a, b) in enumerate(zip(alone, under)):
        check(a == b, f'line {i + 1} is "{a}" without us, "{b}" at {rate} Hz')
    raise Failure(f'{len(alone)} lines without us, {len(under)} at {rate} Hz')


def compare(box, name, *args, stops=True, rates=RATES, more=(), **options):
    """Runs a program without the daemon and under it, and checks that its
    output is the same. more: options of the daemon."""
    program = start(box, name, *args, **options)
    begin(program)
    alone = transcript(program)
    check(alone, f'{name} says nothing')
    for rate in rates:
        program = start(box, name, *args, **options)
        under, profd = profiled(box, program, rate, more)
        check_same(alone, under, rate)
        if stops:
            check(profd.stats['stops'] > 0,
                  f'no thread was stopped at {rate} Hz: {profd.stats}')
    return alone


__all__ = ['harness', 'start', 'begin', 'transcript', 'check_profd',
           'check_quiet', 'profiled', 'check_same', 'compare']
