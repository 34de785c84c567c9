#!/usr/bin/python3
"""sentry-profctl convert: converts envelopes in files to other formats. The
results are read by readers made from the formats' specifications (formats.py).
"""

import copy
import json
import re
import subprocess
from xml.etree import ElementTree

import formats
import harness
from harness import BUILD, check

NOTE = 'counts as running'
SEVERAL = 'some time is in several chunks'
HIDDEN = 'waiting means waiting or ready'


def convert(*args, status=0):
    """Returns standard output as bytes, and standard error."""
    done = subprocess.run([BUILD / 'sentry-profctl', 'convert', *map(str, args)],
                          capture_output=True, env=harness.environment(),
                          check=False)
    stderr = done.stderr.decode()
    check(done.returncode == status, f'{args}: status {done.returncode}: {stderr}')
    return done.stdout, stderr


def write(box, chunks, name='chunks.json'):
    path = box.make_dir('in') / name
    path.write_text('\n'.join(json.dumps(c) for c in chunks))
    return path


def differences(found, wanted):
    return {key: (found.get(key), wanted.get(key))
            for key in found.keys() | wanted.keys()
            if found.get(key) != wanted.get(key)}


def check_formats(paths, wanted):
    for name, reader in formats.READERS.items():
        args = ['--threads'] if name == 'folded' else []
        found = reader(convert(*paths, '--to', name, *args)[0])
        check(found == wanted, f'{name}: {differences(found, wanted)}')


def table(text):
    """Returns {function: self or waiting time in seconds} of a table, with a
    column of ready times or without."""
    rows = {}
    for line in text.splitlines():
        m = re.fullmatch(r' *([\d.]+ s +[\d.]+%|-) +([\d.]+ s +[\d.]+%|-) +'
                         r'(?:(?:[\d.]+ s|-) +)?([\d.]+ s|-)  (\S+)  .*', line)
        if m:
            rows[m[4]] = sum(float(x.split()[0]) for x in (m[1], m[3]) if x != '-')
    return rows


def test_two_processes(box):
    """Every format has the exact time of every stack and thread, in
    microseconds."""
    targets = [box.target('shares'), box.target('shares')]
    profd = box.profile(targets, '--chunk-seconds', '1', work=1.5)
    chunks = profd.chunks
    check(len({c['profiler_id'] for c in chunks}) == 2, 'two processes')
    check(len(chunks) > 3, f'{len(chunks)} chunks')
    wanted = formats.of_chunks(chunks)
    check(len({thread for thread, _ in wanted}) == 4, f'{wanted.keys()}')
    check_formats([profd.output], wanted)
    # The same files given one by one, in reverse order, and some of them
    # twice.
    paths = sorted(profd.output.iterdir(), reverse=True)
    check_formats([*paths, paths[0], profd.output], wanted)

    pprof = formats.Pprof(convert(profd.output, '--to', 'pprof')[0])
    pids = {tags['pid'] for tags, _, _ in pprof.samples}
    check(pids == {str(t.pid) for t in targets}, f'{pids}')
    check(pprof.types == [('samples', 'count'), ('wall', 'nanoseconds'),
                          ('ready', 'nanoseconds'), ('running', 'nanoseconds')],
          f'{pprof.types}')
    check(pprof.default == 'running', pprof.default)
    for chunk in chunks:
        for image in chunk['debug_meta']['images']:
            start = int(image['image_addr'], 16)
            found = [m for m in pprof.mappings.values()
                     if m['start'] == start and m['file'] == image['code_file']]
            check(found and found[0]['build_id'] == image['code_id'], f'{image}')
    libs = json.loads(convert(profd.output, '--to', 'firefox')[0])['libs']
    ought = {(i['code_file'], i['code_id']) for c in chunks
             for i in c['debug_meta']['images']}
    check({(lib['path'], lib['codeId']) for lib in libs} == ought, f'{libs}')
    # Without a code_id, only the 16 bytes of the debug_id are known.
    for chunk in chunks:
        for image in chunk['debug_meta']['images']:
            del image['code_id']
    pprof = formats.Pprof(convert(write(box, chunks), '--to', 'pprof')[0])
    check({(m['file'], m['build_id']) for m in pprof.mappings.values()} ==
          {(path, code[:32]) for path, code in ought}, f'{pprof.mappings}')


def test_pages(box):
    """A page has what its files have: each stack's time and state, and the processes."""
    targets = [box.target('shares'), box.target('naps', 2, 500, 20000)]
    profd = box.profile(targets, '--chunk-seconds', '1', work=0.3, lines=True)
    page = box.make_dir('page') / 'p.html'
    convert(profd.output, '-o', page)
    # Names are shown names there, so formats with those of the file differ.
    for args in (['folded', '--threads'], ['folded', '--state', 'waiting'], ['summary'],
                 ['folded', '--filter', 'busy*'], ['folded', '--from', '0.1', '--until', '0.5']):
        of_files, _ = convert(profd.output, '--to', *args)
        of_page, _ = convert(page, '--to', *args)
        check(sorted(of_files.splitlines()) == sorted(of_page.splitlines()) and of_files,
              f'{args}: {of_files}\n{of_page}')
    check(formats.READERS['speedscope'](convert(page, '--to', 'speedscope')[0]) ==
          formats.READERS['speedscope'](convert(profd.output, '--to', 'speedscope')[0]), 'times')
    # The page of a page, given twice.
    again = page.with_name('q.html')
    convert(page, page, '-o', again)
    once, twice = (sorted(convert(p, '--to', 'folded')[0].splitlines()) for p in (page, again))
    check(once == twice, f'a page of a page: {once} {twice}')
    chunks = [json.loads(line) for line in convert(page, '--to', 'json')[0].splitlines()]
    check({c['release'] for c in chunks} == {c['release'] for c in profd.chunks} and
          {c['profiler_id'] for c in chunks} == {c['profiler_id'] for c in profd.chunks},
          'the processes')
    whole = page.read_bytes()
    page.write_bytes(whole[:whole.index(b'id="data">') + 500])
    said = convert(page, '--to', 'folded', status=1)[1]
    check(f'{page} is a page whose data are damaged or end early' in said, said)


def test_file_and_ending(box):
    profd = box.profile([box.target('shares')], work=0.3, table=True)
    wanted = formats.of_chunks(profd.chunks)
    directory = box.make_dir('out')
    for ending, name in (('.pb.gz', 'pprof'), ('.speedscope.json', 'speedscope'),
                         ('.firefox.json', 'firefox'), ('.json', 'json'),
                         ('.self-profiling.json', 'self-profiling')):
        out = directory / f'p{ending}'
        convert('-o', out, profd.output)
        check(formats.READERS[name](out.read_bytes()) == wanted, ending)
    # The format json can be read again, also if pretty-printed. An existing
    # file is replaced.
    json_file = directory / 'p.json'
    check_formats([json_file], wanted)
    out = directory / 'pretty.json'
    out.write_text('x' * 1000000)
    convert(json_file, '--pretty', '-o', out)
    check(out.read_text().count('\n') > 20, 'many lines')
    check_formats([out], wanted)
    chunk, = profd.chunks
    for member in ('release', 'client_sdk', 'measurements'):
        check(json.loads(json_file.read_text()).get(member) == chunk.get(member), member)

    # The table equals that of the run, in which a wait may last until the
    # run's end.
    printed = table(profd.stdout)
    found = table(convert(profd.output, '--to', 'summary')[0].decode())
    check('busy_seventy' in found, f'{found}')
    for name in ('busy_seventy', 'busy_thirty'):
        check(abs(found[name] - printed[name]) < 0.1 + printed[name] / 20,
              f'{name}: {found} {printed}')


def with_states(chunks):
    """Returns the chunks with made-up states, every third sample ready."""
    chunks = copy.deepcopy(chunks)
    for chunk in chunks:
        names = chunk['profile']['thread_metadata']
        for sample in chunk['profile']['samples']:
            waits = names[sample['thread_id']].get('name') == 'sleeper'
            sample['state'] = 'waiting' if waits else 'running'
        for n, sample in enumerate(chunk['profile']['samples']):
            if n % 3 == 0:
                sample['state'] = 'ready'
    return chunks


def test_states(box):
    profd = box.profile([box.target('shares')], work=0.3)
    chunks = profd.chunks
    without = [copy.deepcopy(c) for c in chunks]
    for chunk in without:
        for sample in chunk['profile']['samples']:
            sample.pop('state', None)
    check(NOTE in convert(write(box, without), '--to', 'folded')[1], 'a note')
    path = write(box, with_states(chunks))
    check(NOTE not in convert(path, '--to', 'folded')[1], 'no note')
    both = formats.of_chunks(chunks)
    for state in ('running', 'ready', 'waiting'):
        wanted = formats.of_chunks(with_states(chunks), state)
        check(0 < len(wanted) < len(both), state)
        for name, reader in formats.READERS.items():
            found = reader(convert(path, '--to', name, '--state', state,
                                   '--threads')[0])
            check(found == wanted, f'{name}: {differences(found, wanted)}')
    running = formats.of_chunks(with_states(chunks), 'running')
    ready = formats.of_chunks(with_states(chunks), 'ready')
    pprof = formats.Pprof(convert(path, '--to', 'pprof')[0])
    check(pprof.totals(3) == running, f'{pprof.totals(3)}')
    check(pprof.totals(2) == ready, f'{pprof.totals(2)}')
    check(pprof.totals(1) == both, f'{pprof.totals(1)}')
    ran = {}
    formats.of_firefox(convert(path, '--to', 'firefox')[0], ran)
    check(ran['sleeper'][0] == 0 < ran['main'][0], f'{ran}')
    for name, (cpu_us, us) in ran.items():
        check(cpu_us == sum(v for (thread, _), v in running.items() if thread == name),
              f'{name}: {cpu_us} {running}')
        check(us == sum(v for (thread, _), v in ready.items() if thread == name),
              f'{name}: {us} {ready}')
    rows = convert(path, '--to', 'summary')[0].decode()
    check(re.search(r'^ +- +- +(-|[\d.]+ s) +[\d.]+ s  (clock_nano|\[libc)', rows, re.M),
          rows)
    check(re.search('^ *SELF +TOTAL +READY +WAITING ', rows, re.M), rows)


def test_programs_of_a_process(box):
    """What a process did before and after an exec stays apart."""
    chunk = box.profile([box.target('shares')], work=0.2).chunks[0]
    path = write(box, [chunk, dict(chunk, chunk_id='1' * 32, release='other@1')])
    lines = convert(path, '--to', 'json')[0].decode().splitlines()
    check({json.loads(line)['release'] for line in lines} == {chunk['release'], 'other@1'},
          f'{len(lines)} payloads')


def test_files_that_hide_ready(box):
    """Files of older versions, whose waiting samples may be ready, also if they
    are merged with newer ones."""
    profd = box.profile([box.target('shares')], work=0.3)
    chunks = profd.chunks
    old = [{k: v for k, v in c.items() if k != 'ready_known'} for c in chunks]
    merged = write(box, old + [dict(c, profiler_id='0' * 32) for c in chunks])
    for path, hides in ((profd.output, False), (write(box, old), True), (merged, True)):
        out, said = convert(path, '--to', 'summary')
        check((HIDDEN in said) == hides, f'{path}: {said}')
        check((b'(waiting or ready)' in out) == hides, f'{path}: {out}')
        check(HIDDEN not in convert(path, '--to', 'folded', '--state', 'running')[1],
              'a note without need')
    # What convert writes says the same of each process.
    back = box.make_dir('back') / 'p.json'
    convert(merged, '-o', back)
    for line in back.read_text().splitlines():
        payload = json.loads(line)
        check(payload.get('ready_known', False) ==
              (payload['profiler_id'] == '0' * 32), 'ready_known')
    check(HIDDEN in convert(back, '--to', 'folded')[1], 'a note')


def ran(target):
    """Returns the seconds for which the threads had a processor, by the
    scheduler."""
    return sum(int(harness.proc_text(target.pid, f'task/{tid}/schedstat').split()[0])
               for tid in harness.threads(target.pid)) / 1e9


def test_a_program_that_never_waits(box):
    """The chunks state that the program runs, so the converter need not guess.
    """
    profd = box.profile([box.target('shares')], '--mode', 'cpu', work=0.3)
    for chunk in profd.chunks:
        first, *others = chunk['profile']['samples']
        check(first.get('state') == 'running', f'{first}')
        check(all('state' not in sample for sample in others), f'{others}')
    wanted = formats.of_chunks(profd.chunks, 'running')
    path = box.make_dir('out') / 'p.json'
    check(convert(profd.output, '-o', path)[1] == '', 'a note')
    for source in (profd.output, path):
        out, said = convert(source, '--to', 'folded', '--threads')
        check(NOTE not in said, said)
        check(formats.of_folded(out) == wanted != {}, f'{out}')
        out, said = convert(source, '--to', 'folded', '--state', 'waiting')
        check(out == b'' and NOTE not in said and 'the output is empty' in said,
              f'{out} {said}')


def test_filters(box):
    profd = box.profile([box.target('shares')], work=0.5)
    whole = formats.of_chunks(profd.chunks)
    for pattern, keeps in (
            ('busy_s*', lambda thread, names: 'busy_seventy' in names),
            ('function=main', lambda thread, names: 'main' in names),
            ('thread=sleeper', lambda thread, names: thread == 'sleeper'),
            ('*shares', lambda thread, names: True),
            ('nothing', lambda thread, names: False)):
        out, _ = convert(profd.output, '--to', 'folded', '--threads', '--filter',
                         pattern)
        wanted = {k: v for k, v in whole.items() if keeps(*k)}
        check(formats.of_folded(out) == wanted, f'{pattern}: {out}')
    out = convert(profd.output, '--to', 'folded', '--threads', '--filter',
                  'busy_*', '--filter', 'thread=sleeper')[0]
    check(out == b'', f'{out}')
    # The parts of the time add up to the whole.
    parts = formats.of_folded(
        convert(profd.output, '--to', 'folded', '--threads', '--until', '0.2')[0])
    check(0 < max(parts.values()) <= 200000, f'{parts}')
    parts += formats.of_folded(
        convert(profd.output, '--to', 'folded', '--threads', '--from', '0.2')[0])
    check(parts == whole, f'{differences(parts, whole)}')
    # One thread, which no frame names.
    out = convert(profd.output, '--to', 'self-profiling', '--thread', 'sleeper')[0]
    check(formats.of_self_profiling(out, 'sleeper') ==
          {k: v for k, v in whole.items() if k[0] == 'sleeper'}, f'{out}')


def made_chunk(frames, stacks, samples, **more):
    """Makes a chunk. Samples are (time, thread, stack)."""
    return {'version': '2', 'profiler_id': 'a' * 32, 'chunk_id': 'b' * 32,
            'platform': 'native', 'profile': {
                'frames': frames, 'stacks': stacks,
                'samples': [{'timestamp': t, 'thread_id': thread, 'stack_id': s}
                            for t, thread, s in samples],
                'thread_metadata': {}}, **more}


def test_parts_make_the_whole(box):
    """Parts of a profile in the format json are not taken for one chunk that is read twice, and
    in every format time that two inputs have counts once."""
    profd = box.profile([box.target('shares')], '--chunk-seconds', '1', work=1.5)
    wanted = formats.of_chunks(profd.chunks)
    place = box.make_dir('parts')
    for options in ((('--until', '0.7'), ('--from', '0.7')),
                    (('--state', 'running'), ('--state', 'ready'), ('--state', 'waiting')),
                    (('--filter', 'thread=sleeper'), ('--filter', 'thread=main'))):
        parts = [place / f'{i}.json' for i in range(len(options))]
        for path, args in zip(parts, options):
            convert(profd.output, *args, '-o', path)
        check_formats(parts, wanted)
        check(SEVERAL not in convert(*parts, '--to', 'folded')[1], f'{options}')
    for name in ('whole.json', 'whole.html'):
        convert(profd.output, '-o', place / name)
        check_formats([profd.output, place / name, parts[0]], wanted)
        for form in (*formats.READERS, 'summary'):
            said = convert(profd.output, place / name, '--to', form)[1]
            check(SEVERAL in said, f'{form}: {said}')


def test_by_samples(box):
    path = write(box, [made_chunk(
        [{'function': 'f'}, {'function': 'g'}], [[0], [1, 0], []],
        [(1, '1', 0), (1.5, '1', 0), (2, '1', 1), (3, '1', 2), (4, '1', 0)])])
    check(convert(path, '--to', 'folded', '--by', 'samples')[0] == b'f 2\nf;g 1\n',
          'samples')
    check(convert(path, '--to', 'folded', '--by', 'us')[0] ==
          b'f 1000000\nf;g 1000000\n', 'us')


def test_firefox_has_gaps_and_ends(box):
    """The viewer shows a sample until the next one: what is between bars has a sample."""
    path = write(box, [made_chunk([{'function': 'f'}], [[0], []],
                                  [(1, '1', 0), (1.5, '1', 1), (9, '1', 0), (12, '1', 0)])])
    thread, = json.loads(convert(path, '--to', 'firefox')[0])['threads']
    samples = thread['samples']
    check([s is None for s in samples['stack']] == [False, True, False, True], f'{samples}')
    check(samples['time'] == [0, 500, 8000, 11000], f'{samples}')
    check(samples['weight'] == [500, 0, 3000, 0], f'{samples}')
    check(samples['threadCPUDelta'] == [0, 500000, 0, 3000000], f'{samples}')


def test_a_page_has_no_numbers_of_samples(box):
    """Samples with the same stack in a row are one in a page. Its times are exact."""
    path = write(box, [made_chunk([{'function': 'f'}], [[0]],
                                  [(t, '1', 0) for t in (1, 1.5, 2, 3)])])
    page = box.make_dir('page') / 'p.html'
    convert(path, '-o', page)
    line = 'numbers of samples are too small'
    for args in (('folded', '--by', 'samples'), ('pprof',)):
        check(line in convert(page, '--to', *args)[1], f'{args}')
        check(line not in convert(path, '--to', *args)[1], f'{args}')
    check(line not in convert(page, '--to', 'folded')[1], 'times are exact')
    back = page.with_name('p.json')
    convert(page, '-o', back)
    check(line in convert(back, '--to', 'pprof')[1], 'of the format json')


def test_the_format_json_says_what_a_page_says(box):
    page = box.make_dir('page') / 'p.html'
    for ready in (True, False):
        chunk = made_chunk([{'function': 'f'}], [[0]], [(1, '1', 0), (2, '1', 0)],
                           symbols='names', ready_known=ready)
        chunk['profile']['samples'][0]['state'] = 'waiting'
        convert(write(box, [chunk]), '-o', page)
        found = json.loads(convert(page, '--to', 'json')[0])
        check(found['symbols'] == 'names' and found['ready_known'] == ready, f'{found}')
        back = page.with_name('p.json')
        convert(page, '-o', back)
        check((HIDDEN in convert(back, '--to', 'folded')[1]) != ready, f'{ready}')


def test_pprof_lasts_as_long_as_what_is_selected(box):
    path = write(box, [made_chunk([{'function': 'f'}], [[0]], [(100, '1', 0), (160, '1', 0)])])
    for args, begin, seconds in (((), 100, 60), (('--from', '10', '--until', '20'), 110, 10),
                                 (('--from', '50'), 150, 10), (('--until', '99'), 100, 60)):
        pprof = formats.Pprof(convert(path, '--to', 'pprof', *args)[0])
        check((pprof.time_ns, pprof.duration_ns) == (begin * 10**9, seconds * 10**9),
              f'{args}: {pprof.time_ns} {pprof.duration_ns}')


def test_hostile_names(box):
    """Hostile names are treated as text, and escaped for a terminal."""
    names = ['<script>alert(1)</script>', '\x1b[31mred\x07', 'a;b 7', 'c\nd 8',
             '\u009b2J', 'e\t"\\', '\u202egpj', 'x' * 5000, '']
    frames = [{'function': n, 'package': n, 'what': [1], 'abs_path': n}
              for n in names]
    chunk = made_chunk(frames, [list(range(len(names)))],
                       [(1, '1', 0), (2, '1', 0)], unknown={'deep': [[{}]]})
    chunk['profile']['thread_metadata'] = {'1': {'name': '<b>\x1b]0;t\x07'}}
    chunk['profile']['new'] = None
    path = write(box, [chunk])
    wanted = formats.of_chunks([chunk])
    for name, reader in formats.READERS.items():
        out = convert(path, '--to', name)[0]
        if name not in ('folded', 'pprof'):
            check(b'\x1b' not in out and b'\x07' not in out, f'{name}: {out}')
        if name != 'folded':
            found = {k[0]: set(k[1]) for k in reader(out)}
            check(set(names[:-1]) <= found['<b>\x1b]0;t\x07'], f'{name}: {found}')
            check(reader(out) == wanted, name)
    for args in (['folded'], ['folded', '--threads'], ['summary']):
        out = convert(path, '--to', *args)[0].decode()
        check(not re.search(r'[\x00-\x09\x0b-\x1f\x7f-\x9f]', out), repr(out))
    line, = convert(path, '--to', 'folded')[0].decode().splitlines()
    check(line.count(';') == len(names) - 1 and line.endswith(' 1000000'), line)


def test_what_is_no_chunk(box):
    """An invalid file causes an error that names it, no crash, and no partial
    output."""
    good = made_chunk([{'function': 'f'}], [[0]], [(1, '1', 0), (2, '1', 0)])

    def broken(**change):
        chunk = copy.deepcopy(good)
        chunk['profile'].update(change)
        return json.dumps(chunk).encode()

    envelope = b'{"event_id":"0"}\n{"type":"profile_chunk","length":%d}\n%s\n'
    whole = json.dumps(good).encode()
    inputs = {
        'stack': broken(stacks=[[1]]),
        'sample': broken(samples=[{'timestamp': 1, 'thread_id': '1',
                                   'stack_id': 7}]),
        'time': broken(samples=[{'timestamp': -1, 'thread_id': '1',
                                 'stack_id': 0}]),
        'types': broken(frames='f'),
        'nothing': b'', 'words': b'hello\n', 'zeros': bytes(10000),
        'deep': b'[' * 100000, 'cut': whole[:-10],
        'envelope_cut': envelope % (len(whole) + 5, whole),
        'length': envelope % (2 ** 63 - 1, whole),
        'utf8': whole.replace(b'"f"', b'"\xff"'),
        'nul': whole.replace(b'"f"', b'"\\u0000"'),
        'number': whole.replace(b': 1,', b': 1e999,'),
        'version1': json.dumps({**good, 'version': '1'}).encode(),
        'report': b'{"event_id":"0"}\n{"type":"client_report"}\n{}\n',
        'transaction': b'{"event_id":"0"}\n{"type":"profile","length":2}\n{}\n',
        'gzip': b'\x1f\x8b\x08' + bytes(50),
    }
    directory = box.make_dir('bad')
    out = directory / 'out.folded'
    for name, data in inputs.items():
        path = directory / name
        path.write_bytes(data)
        _, stderr = convert(path, '-o', out, status=1)
        check(len(stderr.splitlines()) == 1 and len(stderr) < 1000, stderr)
        if name not in ('nothing', 'report', 'transaction'):
            check(str(path) in stderr, f'{name}: {stderr}')
        check(not out.exists(), name)
    _, stderr = convert(directory / 'missing', '-o', out, status=1)
    check('missing' in stderr and 'No such file' in stderr, stderr)
    # In a directory only envelopes are read.
    check('no profile chunk' in convert(directory, '-o', out, status=1)[1], 'empty')
    (directory / 'x.envelope').write_bytes(envelope % (len(whole), whole))
    (directory / '.y.envelope.part').write_bytes(b'{')
    check(convert(directory, '--to', 'folded')[0] == b'f 1000000\n', 'a directory')
    # If writing fails, no file is left behind.
    check(convert(directory, '-o', directory / 'no/such.folded', status=1)[1], 'dir')
    for to in 'json', 'folded', 'svg', 'pprof', 'html':
        check('No space' in convert(directory, '-o', '/dev/full', '--to', to, status=1)[1],
              f'a full disk, {to}')


def test_svg(box):
    """The picture is XML whatever the names are, has no links, and shows the running time."""
    names = ['<script>alert(1)</script>', 'a&amp;b', ']]>', '\u0001\u0085\uffff', '"', 'f']
    chunk = made_chunk([{'function': n} for n in names],
                       [[0], [1, 0], [2, 0], [3, 0], [4, 0], [5]],
                       [(n, '1', n % 6) for n in range(13)])
    for sample in chunk['profile']['samples']:
        sample['state'] = 'waiting' if sample['stack_id'] == 5 else 'running'
    text = convert(write(box, [chunk]), '--to', 'svg')[0].decode()
    root = ElementTree.fromstring(text)
    tags = [element.tag.partition('}')[2] for element in root.iter()]
    check(tags.count('script') == 1 and 'href' not in text, f'{tags}')
    titles = sorted(t.text for t in root.iter('{http://www.w3.org/2000/svg}title'))
    # Each of the other stacks has 2 of 10 s.
    check(titles == sorted(['all (10.000 s, 100.00%)', f'{names[0]} (10.000 s, 100.00%)'] + [
        f'{name} (2.000 s, 20.00%)' for name in (*names[1:3], '___', '"')]), f'{titles}')
    waits = convert(write(box, [chunk]), '--to', 'svg', '--state', 'waiting')[0].decode()
    check('Waiting time: 2.00 s' in waits and 'f (2.000 s, 100.00%)' in waits, waits)


def test_usage(box):
    path = write(box, [made_chunk([{}], [[0]], [(1, '1', 0), (2, '1', 0)])])
    for args, words in (
            ([], 'no input'), ([path], 'which format'),
            ([path, '-o', 'x.nothing'], 'speedscope'),
            ([path, '--to', 'png'], 'folded, speedscope'),
            ([path, '--to', 'folded', '--by', 'weight'], 'samples or us'),
            ([path, '--to', 'folded', '--state', 'x'], 'running'),
            ([path, '--to', 'folded', '--from', 'x'], 'seconds'),
            ([path, '--to', 'folded', '--until', '-1'], 'seconds'),
            ([path, '--to', 'folded', '--flter', 'x'], 'did you mean --filter')):
        check(words in convert(*args, status=2)[1], f'{args}')
    out = path.with_name('out')
    out.write_text('from before')
    check('no thread is called x' in convert(
        path, '--to', 'self-profiling', '--thread', 'x', '-o', out, status=1)[1], 'thread')
    check(out.read_text() == 'from before', 'a wrong name costs no file')


if __name__ == '__main__':
    harness.main(globals())
