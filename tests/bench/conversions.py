"""Measures sentry-profctl convert on 1,000,000 samples, and compare on twice as many, and
compares the cost with that of jansson parsing the same bytes (parse.c).
"""

import json
import os
import random
import subprocess

import harness
import report

NAME = 'convert'
SAMPLES = 1_000_000
# (threads, seconds)
SHAPES = [(100, 50), (10, 480)]
FORMATS = ['folded', 'speedscope', 'pprof', 'firefox', 'self-profiling', 'json',
           'summary']
# How often the profile is read: compare gets it as both sides.
READS = dict.fromkeys(['parse', *FORMATS], 1) | {'compare': 2}
# The largest chunk that the daemon makes: 20 MB (proto/chunk_v2.h) and 60 s.
CHUNK_SAMPLES = 250_000
CHUNK_S = 60
FUNCTIONS, STACKS, DEPTH = 3000, 2000, 30
# The share of a thread's samples whose stack differs from that of the sample before.
CHANGES = 0.5
LIMIT = 2
REPEATS = 3


def stacks(rng):
    """Returns stacks, leaf first, that have frames near the root in common."""
    made = [[0]]
    while len(made) < STACKS:
        stack = rng.choice(made)
        stack = stack[rng.randrange(len(stack)):]
        while len(stack) < DEPTH and rng.random() < 0.9:
            stack = [rng.randrange(FUNCTIONS), *stack]
        made.append(stack)
    return made


def chunk(rng, number, threads, start_s, seconds, samples):
    frames = [{'instruction_addr': hex(0x400000 + 16 * i), 'in_app': i % 2 == 0,
               'function': f'module::function_{i}(int, char const*)',
               'package': f'/opt/app/library_{i % 20}.so'}
              for i in range(FUNCTIONS)]
    steps = samples // threads
    now, made = [0] * threads, []
    for i in range(steps):
        for t in range(threads):
            if rng.random() < CHANGES:
                now[t] = rng.randrange(STACKS)
            made.append({'timestamp': round(start_s + i * seconds / steps, 6),
                         'thread_id': str(t), 'stack_id': now[t],
                         'state': 'waiting' if now[t] % 4 == 0 else 'running'})
    return {'version': '2', 'profiler_id': 'a' * 32, 'chunk_id': f'{number:032x}',
            'platform': 'native', 'debug_meta': {'images': []}, 'profile': {
                'frames': frames, 'stacks': stacks(rng), 'samples': made,
                'thread_metadata': {str(t): {'name': f'worker-{t}'}
                                    for t in range(threads)}}}


def generate(directory, threads, seconds, samples):
    """Writes envelopes with this number of samples. Returns the number of chunks."""
    rng = random.Random(threads)
    n = max(-(-samples // CHUNK_SAMPLES), -(-seconds // CHUNK_S))
    for i in range(n):
        data = json.dumps(chunk(rng, i, threads, 1.7e9 + i * seconds / n,
                                seconds / n, samples // n),
                          separators=(',', ':')).encode()
        (directory / f'{i:06}.envelope').write_bytes(
            b'{"event_id":"0"}\n{"type":"profile_chunk","length":%d}\n%s\n'
            % (len(data), data))
    return n


def cost(*argv):
    """Runs a command. Returns its CPU time in s and its peak memory in bytes."""
    child = subprocess.Popen([str(a) for a in argv], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    _, child.returncode, usage = os.wait4(child.pid, 0)
    harness.check(child.returncode == 0, f'{argv}: {child.returncode}')
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def run(box, smoke=False):
    """Returns [(samples, threads, chunks, bytes, {command or format: (seconds, memory,
    bytes of output)})]."""
    found = []
    samples = SAMPLES // 500 if smoke else SAMPLES
    for threads, seconds in SHAPES:
        directory = box.make_dir(f'{threads}-threads')
        n = generate(directory, threads, seconds, samples)
        files = sorted(directory.iterdir())
        costs = {}
        for _ in range(1 if smoke else REPEATS):
            for what in READS:
                out = box.dir / f'converted.{what}'
                if what == 'parse':
                    argv = [harness.BUILD / 'bench/parse', *files]
                elif what == 'compare':
                    argv = [harness.BUILD / 'sentry-profctl', what, directory,
                            directory, '--to', 'table', '-o', out]
                else:
                    argv = [harness.BUILD / 'sentry-profctl', 'convert', directory,
                            '--to', what, '-o', out]
                s, memory = cost(*argv)
                size = out.stat().st_size if out.exists() else 0
                costs[what] = min(costs.get(what, (s, memory, size)),
                                  (s, memory, size))
        found.append((samples, threads, n, sum(f.stat().st_size for f in files), costs))
    return found


def times_parse(costs, what):
    """Returns the CPU time as a multiple of that of parsing what the command reads."""
    return costs[what][0] / costs['parse'][0] / READS[what]


def wanted(figures):
    """Returns requirements as report.requirements()."""
    if figures is None:
        return []
    worst, of = max((times_parse(costs, f), f)
                    for *_, costs in figures for f in FORMATS)
    compare = max(times_parse(costs, 'compare') for *_, costs in figures)
    limit = f'<= {LIMIT} times jansson\'s parsing'
    return [('processor time of convert', limit, f'{worst:.2f} ({of})', worst <= LIMIT),
            ('processor time of compare', limit, f'{compare:.2f}', compare <= LIMIT)]


def text(figures):
    parts = [f'### Profiles in files (`T={NAME}`)\n']
    for samples, threads, chunks, size, costs in figures:
        rows = [[what, report.number(1000 * s, 0, ' ms'),
                 f'{times_parse(costs, what):.2f}',
                 report.number(memory / 1e6, 0, ' MB'),
                 report.number(out / 1e6, 1, ' MB') if out else '']
                for what, (s, memory, out) in costs.items()]
        parts += [f'{size / 1e6:.0f} MB, {samples:,} samples of {threads} threads '
                  f'in {chunks} chunks. '
                  f'"parse" is jansson alone, with one payload '
                  f'in memory at a time. "compare" reads the profile twice, so '
                  f'its time is divided by that of two parses.\n',
                  report.table(['command or format', 'CPU time', 'times parse',
                                'memory', 'output'], rows)]
    return '\n'.join(parts)
