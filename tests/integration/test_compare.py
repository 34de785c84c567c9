#!/usr/bin/python3
"""sentry-profctl compare: profiles with an exactly known difference, and two
profiles of a program whose shares were changed."""

import collections
import json
import os
import pty
import re
import subprocess

import harness
from formats import page_data
from harness import BUILD, check


def command(*args):
    return [BUILD / 'sentry-profctl', 'compare', *map(str, args)]


def compare(*args, status=0):
    """Returns standard output and standard error."""
    done = subprocess.run(command(*args), capture_output=True, text=True,
                          env=harness.environment(), check=False)
    check(done.returncode == status, f'{args}: status {done.returncode}: {done.stderr}')
    return done.stdout, done.stderr


def made_chunk(stacks, module='/opt/app', base=0x1000, build='a', **more):
    """Makes a chunk. stacks: (names from the root, seconds, state), one after
    the other."""
    names = sorted({name for stack, _, _ in stacks for name in stack})
    samples, now = [], 1000.0
    for i, (_, seconds, state) in enumerate(stacks):
        samples.append({'timestamp': now, 'thread_id': '1', 'stack_id': i,
                        'state': state})
        now += seconds
    samples.append({'timestamp': now, 'thread_id': '1', 'stack_id': 0,
                    'state': 'running'})
    return {'version': '2', 'profiler_id': 'a' * 32, 'chunk_id': 'b' * 32,
            'platform': 'native', 'ready_known': True, 'debug_meta': {'images': [
                {'code_file': module, 'debug_id': build * 32,
                 'image_addr': hex(base), 'image_size': 65536}]},
            'profile': {
                'frames': [{'function': name, 'package': module,
                            'instruction_addr': hex(base + 16 * i)}
                           for i, name in enumerate(names)],
                'stacks': [[names.index(n) for n in reversed(stack)]
                           for stack, _, _ in stacks],
                'samples': samples, 'thread_metadata': {}}, **more}


def write(box, name, *chunks):
    path = box.make_dir('in') / name
    path.write_text('\n'.join(json.dumps(c) for c in chunks))
    return path


def known(box):
    """Two profiles, of 4 s and of 20 s. The directory, the build and all
    addresses differ."""
    a = made_chunk([(('main', 'parse'), 1, 'running'), (('main', 'send'), 1, 'running'),
                    (('main',), 2, 'running'), (('main', 'poll'), 6, 'waiting')])
    b = made_chunk([(('main', 'parse'), 10, 'running'), (('main', 'send'), 1, 'running'),
                    (('main', 'log'), 4, 'running'), (('main',), 5, 'running'),
                    (('main', 'poll'), 20, 'waiting')],
                   module='/srv/2/app', base=0x777000, build='b')
    return write(box, 'a.json', a), write(box, 'b.json', b)


def rows(text):
    """Returns [(function, module, A, B, change)] in the order of the table."""
    found = []
    for line in text.splitlines():
        m = re.fullmatch(r' *([\d.]+%|-) +([\d.]+%|-) +([+-][\d.]+)  (\S+) +(\S+)', line)
        if m:
            a, b = (0.0 if x == '-' else float(x[:-1]) for x in m.groups()[:2])
            found.append((m[4], m[5], a, b, float(m[3])))
    return found


def test_known_difference(box):
    a, b = known(box)
    out, stderr = compare(a, b)
    check(stderr == '', stderr)
    check(rows(out) == [
        ('main', 'app', 50.0, 25.0, -25.0), ('parse', 'app', 25.0, 50.0, 25.0),
        ('log', 'app', 0.0, 20.0, 20.0), ('send', 'app', 25.0, 5.0, -20.0)], out)
    # The line that states how times are normalised.
    check(f'A  {a}: threads ran for 4.00 s within 10.00 s, 0.40 s a second' in out, out)
    check(f'B  {b}: threads ran for 20.00 s within 40.00 s, 0.50 s a second' in out, out)
    check('the time that the threads of that side ran' in out, out)
    # A and B exchanged.
    check([(n, m, y, x, -d) for n, m, x, y, d in rows(compare(b, a)[0])] == rows(out),
          'the other way round')
    # With waits.
    out = compare('--state', 'all', a, b)[0]
    check(rows(out)[0] == ('parse', 'app', 10.0, 25.0, 15.0), out)
    check(('poll', 'app', 60.0, 50.0, -10.0) in rows(out), out)
    check('ran, were ready or waited' in out, out)
    out = compare('--filter', 'function=parse', a, b)[0]
    check(rows(out) == [] and '(1 other function;' in out, out)


def test_names(box):
    """Names are short, and differ."""
    names = ('Pool<char>::take(unsigned)', 'Pool<long>::take(unsigned)',
             'Pool<long>::give(unsigned)')
    a = write(box, 'a.json', made_chunk([((name,), 1, 'running') for name in names]))
    b = write(box, 'b.json', made_chunk([((name,), i * i + 1, 'running')
                                         for i, name in enumerate(names)]))
    check({r[0] for r in rows(compare(a, b)[0])} == {
        'Pool<char>::take(...)', 'Pool<long>::take(...)', 'Pool<...>::give(...)'}, compare(a, b)[0])
    check({r[0] for r in rows(compare('--names', 'full', a, b)[0])} == set(names),
          'full names')
    check('not short or full' in compare('--names', 'long', a, b, status=2)[1], 'a fault')


def test_parts_of_the_time(box):
    """Times count from the first sample of each side."""
    a, b = known(box)
    b_chunk = json.loads(b.read_text())
    for sample in b_chunk['profile']['samples']:
        sample['timestamp'] += 500
    b.write_text(json.dumps(b_chunk))
    # From A: one second of parse and half of send; from B: all six seconds of
    # parse.
    out, stderr = compare(a, b, '--until', '1.5', '--state', 'all')
    check(stderr == '' and 'A  ' in out and 'within 1.50 s' in out, f'{out}{stderr}')
    check(rows(out) == [('parse', 'app', 66.7, 100.0, 33.3),
                        ('send', 'app', 33.3, 0.0, -33.3)], out)
    # From A: all but parse; from B: the end of parse, and all after it.
    out = compare(a, b, '--from', '1', '--until', '11')[0]
    check(f'A  {a}: threads ran for 3.00 s within 9.00 s' in out, out)
    check(f'B  {b}: threads ran for 10.00 s within 10.00 s' in out, out)
    check(rows(out) == [('parse', 'app', 0.0, 90.0, 90.0),
                        ('main', 'app', 66.7, 0.0, -66.7),
                        ('send', 'app', 33.3, 10.0, -23.3)], out)
    stderr = compare(a, b, '--from', '10', status=1)[1]
    check(f'nothing to compare with: {a} has no' in stderr, stderr)


def test_folded(box):
    a, b = known(box)
    out, stderr = compare(a, b, '--to', 'folded')
    check(sorted(out.splitlines()) == [
        'main 500000000 250000000', 'main;log 0 200000000',
        'main;parse 250000000 500000000', 'main;send 250000000 50000000'], out)
    check('nanoseconds of each second' in stderr, stderr)
    path = box.make_dir('out') / 'x.folded'
    check(compare('-o', path, a, b)[0] == '' and path.read_text() == out, 'a file')


def test_ready(box):
    """Ready time is compared alone, and is not part of the running time."""
    both = [(('main', 'parse'), 3, 'ready'), (('main',), 1, 'ready')]
    a = write(box, 'a.json', made_chunk([*both, (('main', 'poll'), 1, 'waiting')]))
    b = write(box, 'b.json', made_chunk([(('main',), 2, 'ready'), (('main',), 2, 'running')]))
    out, said = compare('--state', 'ready', a, b)
    check(f'A  {a}: threads were ready for 4.00 s within 5.00 s' in out and said == '', out)
    check(rows(out) == [('main', 'app', 25.0, 100.0, 75.0),
                        ('parse', 'app', 75.0, 0.0, -75.0)], out)
    # A file whose profiler did not tell ready from waiting.
    stacks = [*both, (('main', 'poll'), 1, 'waiting'), (('main',), 1, 'running')]
    old = write(box, 'old.json', made_chunk(stacks, ready_known=False))
    new = write(box, 'new.json', made_chunk(stacks))
    for state, hides in (('ready', True), ('waiting', True), ('all', True),
                         ('running', False)):
        said = compare('--state', state, old, new)[1]
        check(('waiting means waiting or ready' in said) == hides, f'{state}: {said}')


def test_page(box):
    """tests/pictures/test_compare.js checks it in a browser."""
    a, b = known(box)
    path = box.make_dir('out') / 'x.html'
    check(compare(a, b, '-o', path) == ('', ''), 'a page is silent')
    data = page_data(path)
    for name in (str(a), str(b), 'parse', 'poll', '/opt/app'):
        check(name.encode() in data, name)
    check(b'/srv/2/app' not in data, 'modules have one name')


def test_pages_are_compared(box):
    """Two pages give the table that the files give; a page of a comparison is no profile."""
    files = known(box)
    pages = [path.with_suffix('.html') for path in files]
    for path, page in zip(files, pages):
        subprocess.run([BUILD / 'sentry-profctl', 'convert', path, '-o', page], check=True)
    of_files, of_pages = compare(*files)[0], compare(*pages)[0]
    check(rows(of_files) == rows(of_pages) and rows(of_files), f'{of_files}{of_pages}')
    # Main programs of other names are matched in pages, too.
    chunk = json.loads(files[1].read_text())
    for value in (*chunk['debug_meta']['images'], *chunk['profile']['frames']):
        for key in ('code_file', 'package'):
            if key in value:
                value[key] = '/srv/2/newer'
    other = write(box, 'other.json', chunk)
    page = other.with_suffix('.html')
    subprocess.run([BUILD / 'sentry-profctl', 'convert', other, '-o', page], check=True)
    check(rows(compare(pages[0], page)[0]) == rows(of_files), compare(pages[0], page)[0])
    both = pages[0].with_name('both.html')
    compare(*pages, '-o', both)
    said = compare(both, files[0], status=1)[1]
    check('compares two profiles: give these instead' in said, said)


def test_one_profile_twice(box):
    a, _ = known(box)
    out = compare(a, a)[0]
    check(rows(out) == [] and '+0.0  (3 other functions; +0.0, +0.0)' in out, out)


def test_real_profiles(box):
    """A program that spends 30 %, and then 60 %, of its time in first()."""
    outputs, chunks = [], []
    for tenths in (3, 6):
        # At this rate a difference of six points is not due to chance.
        profd = box.profile([box.target('two_shares', tenths)], '--rate', '997',
                            work=2)
        outputs.append(profd.output)
        chunks += profd.chunks
    out = compare(*outputs)[0]
    found = {function: (a, b, change) for function, _, a, b, change in rows(out)}
    check(rows(out)[0][1] == 'two_shares', out)
    for name, wanted in (('first', (30, 60, 30)), ('second', (70, 40, -30))):
        for value, expected in zip(found[name], wanted):
            check(abs(value - expected) < 6, f'{name}: {out}')
    check(len({c['debug_meta']['images'][0]['image_addr'] for c in chunks}) > 1,
          'both runs have the same addresses')
    totals = collections.Counter()
    for line in compare(*outputs, '--to', 'folded')[0].splitlines():
        stack, x, y = line.rsplit(' ', 2)
        totals[stack.split(';')[-1]] += int(y) - int(x)
    check(abs(totals['first'] / 1e7 - found['first'][2]) < 0.06, f'{totals} {out}')


def run_on_terminal(*args, **environment):
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(BUILD / 'sentry-profctl', command(*args),
                  {**harness.environment(), **environment})
    out = b''
    try:
        while data := os.read(fd, 65536):
            out += data
    except OSError:  # the peer has closed
        pass
    os.close(fd)
    check(os.waitpid(pid, 0)[1] == 0, out.decode())
    return out.decode()


def test_colours(box):
    a, b = known(box)
    check('\x1b' not in compare(a, b)[0], 'colours in a pipe')
    out = run_on_terminal(a, b)
    check('\x1b[31m  +25.0\x1b[0m  parse' in out and
          '\x1b[34m  -20.0\x1b[0m  send' in out, repr(out))
    check('\x1b' not in run_on_terminal(a, b, NO_COLOR='1'), 'NO_COLOR')
    check('\x1b' in run_on_terminal(a, b, NO_COLOR=''), 'an empty NO_COLOR')


def test_hostile_names(box):
    names = ('<script>', '\x1b[31mred\x07', 'a;b 7', 'c\nd 8', '\u009b2J', 'x' * 5000)
    a = write(box, 'a.json', made_chunk([(names, 1, 'running')], module='\x1b]0;t\x07'))
    b = write(box, 'b.json', made_chunk([(names[:2], 1, 'running')]))
    for form in ('table', 'folded'):
        out = compare(a, b, '--to', form)[0]
        check(not re.search(r'[\x00-\x09\x0b-\x1f\x7f-\x9f]', out), repr(out))


def test_usage(box):
    a, b = known(box)
    for args, words in (
            ([], 'two files or directories'), ([a], 'too few'), ([a, b, a], 'too many'),
            ([a, b, '--to', 'svg'], 'table, folded, html'), ([a, b, '-o', 'x.y'], 'which format'),
            ([a, b, '--state', 'x'], 'compare: --state x: not all, running, ready or waiting'),
            ([a, b, '--from', 'x'], 'compare: --from x: not a number of seconds'),
            ([a, b, '--until', '-1'], 'compare: --until -1: not a number'),
            ([a, b, '-t'], 'compare: -t: not known'),
            ([a, b, '--flter', 'x'], 'did you mean --filter')):
        check(words in compare(*args, status=2)[1], f'{args}')
    empty = box.make_dir('empty')
    for args, words in (
            ([a, empty], f'no profile chunk in {empty}'),
            ([a, empty / 'missing'], 'missing: No such file'),
            ([a, b, '--filter', 'function=log'], f'nothing to compare with: {a} has no'),
            ([a, b, '-o', empty / 'no/x.folded'], 'cannot write'),
            ([a, b, '-o', '/dev/full', '--to', 'table'], 'failed: No space left'),
            ([a, b, '-o', '/dev/full', '--to', 'folded'], 'failed: No space left')):
        check(words in compare(*args, status=1)[1], f'{args}: {compare(*args, status=1)}')


if __name__ == '__main__':
    harness.main(globals())
