#!/usr/bin/python3
"""--symbols lines: file, line and inlined functions."""

import os
import re
import shutil
import signal
import subprocess

import chunk_rules
import harness
from harness import BUILD, ROOT, Skip, check

# A sandboxed process that makes a forbidden call is killed.
STRICT = harness.environment(SENTRY_PROFD_SECCOMP_KILL='1')


def run(*argv):
    subprocess.run([str(a) for a in argv], check=True)


def expected(target):
    return [(f, name, int(line)) for f, name, line in
            re.findall(r'^expect (\S+) (\S+) (\d+)$', target.stdout, re.M)]


def profile(box, target, *options):
    profd = box.profile([target], '--symbols', 'lines', *options, env=STRICT)
    return waiting_stack(profd, *options)


def waiting_stack(profd, *options):
    """Returns the frames of the deepest stack that waits, of a run with one chunk.
    """
    envelope, = profd.envelopes
    check(profd.stats['unwind']['without_lines'] == 0, 'nothing is too large')
    platform = 'native' if 'native' in options else 'rust'
    found = chunk_rules.problems(envelope, platform=platform)
    check(found == [], f'{found[:5]}')
    frames = envelope.chunk['profile']['frames']
    stacks = [[frames[i] for i in stack]
              for stack in envelope.chunk['profile']['stacks']]
    waiting = [stack for stack in stacks
               if 'wait_here' in [f.get('function') for f in stack]]
    check(waiting, f'nothing waits: {[places(stack) for stack in stacks]}')
    return max(waiting, key=len)


def places(frames):
    return [(f.get('function'), f.get('filename'), f.get('lineno'))
            for f in frames]


NATIVE = ('--platform', 'native')


def check_native(box, target):
    check_frames(profile(box, target, *NATIVE), expected(target))


def check_frames(frames, ours):
    seen = places(frames)
    check(ours[0] in seen, f'{ours[0]} is not in {seen}')
    at = seen.index(ours[0])
    check(seen[at:at + 4] == ours, f'{seen}, not {ours}')
    inlined = frames[at:at + 3]
    check(len({f['instruction_addr'] for f in inlined}) == 1 and
          all(f['in_app'] for f in inlined), f'{inlined}')
    check(frames[at - 1]['function'] == 'wait_here', f'{frames[at - 1]}')


def test_too_large(box):
    """A line says why there are no lines."""
    path, large = (box.make_dir('large') / name for name in ('large', 'zeros'))
    run('gcc', '-O2', '-g', ROOT / 'tests/targets/inlined.c', '-o', path)
    with large.open('wb') as f:
        f.truncate(129 << 20)
    run('objcopy', '--add-section', f'.debug_addr={large}', path)
    profd = box.profile([start(box, path)], '--symbols', 'lines', env=STRICT)
    check(profd.stats['unwind']['without_lines'] > 0, f'{profd.stats["unwind"]}')
    lines = [l for l in profd.stderr.splitlines() if 'too large' in l]
    check(len(lines) == 1 and str(path) in lines[0], profd.stderr)


def test_the_memory_of_a_large_file(box):
    """The sections are not in memory twice."""
    path, large = (box.make_dir('large') / name for name in ('large', 'zeros'))
    run('gcc', '-O2', '-g', ROOT / 'tests/targets/inlined.c', '-o', path)
    with large.open('wb') as f:
        f.truncate(40 << 20)
    for section in '.debug_addr', '.debug_ranges', '.debug_str_offsets':
        run('objcopy', '--add-section', f'{section}={large}', path)
    profd = box.profile([start(box, path)], '--symbols', 'lines', env=STRICT)
    check(profd.stats['unwind']['without_lines'] == 0, f'{profd.stats["unwind"]}')
    peak = profd.stats['rss_peak_bytes']['unwind']
    check(120 << 20 < peak < 190 << 20, f'{peak} bytes')


def start(box, path):
    target = box.start([path])
    target.wait_line('ready.*')
    harness.wait_for(lambda: harness.blocked(target.pid), 'it waits')
    return target


def test_inlined(box):
    """Inlined functions are frames of their own, all with the same address."""
    target = start(box, BUILD / 'targets/inlined')
    check_native(box, target)


def test_where_the_server_does_it(box):
    """One frame for each address: its function, and the line in that function.
    """
    target = start(box, BUILD / 'targets/inlined')
    frames = profile(box, target)
    ours = expected(target)
    seen = places(frames)
    at = seen.index(ours[2])
    check(seen[at:at + 2] == ours[2:], f'{seen}, not {ours[2:]}')
    check(frames[at - 1]['function'] == 'wait_here', f'{seen}')
    check(frames[at]['abs_path'].endswith('tests/targets/inlined.c'),
          f'{frames[at]}')


def test_not_asked_for(box):
    target = start(box, BUILD / 'targets/inlined')
    profd = box.profile([target], '--platform', 'native')
    frames = profd.chunks[0]['profile']['frames']
    check(not any({'lineno', 'filename', 'lines'} & set(f) for f in frames),
          f'{frames}')
    check(profd.chunks[0]['symbols'] == 'names', 'what was looked for')


def in_files(frames):
    """Returns the places of the frames, and of the functions inlined there, innermost first."""
    return [(line.get('function', f.get('function')), os.path.basename(line.get('file', '')),
             line.get('line')) for f in frames for line in f.get('lines', [{}])]


def test_a_run_by_hand(box):
    """Without --symbols, files have lines and inlined functions, on each platform. What is sent has
    neither."""
    target = start(box, BUILD / 'targets/inlined')
    ours = expected(target)
    for options in (), NATIVE, ('--mode', 'wall'):
        server = box.server()
        profd = box.profile([target], '--dsn', server.dsn, *options, lines=True,
                            env={**STRICT, **server.env})
        envelope, = profd.envelopes
        found = chunk_rules.problems(envelope, platform=envelope.chunk['platform'])
        check(found == [], f'{found[:5]}')
        frames = envelope.chunk['profile']['frames']
        stack, = {tuple(s) for s in envelope.chunk['profile']['stacks'] if len(s) > 4}
        seen = in_files([frames[i] for i in stack])
        at = seen.index(ours[0])
        check(seen[at:at + 4] == ours, f'{seen}, not {ours}')
        check(envelope.chunk['symbols'] == 'lines', 'what was looked for')
        sent, = server.envelopes
        check(envelope.is_sent_as(sent), 'the server has another chunk')
        for word in b'inlined.c', b'inlined.h', b'in_header', b'"lines"', b'"symbols"':
            check(word not in sent.payload, f'{word} was sent: {sent.payload}')
        check(b'"outer"' in sent.payload, f'{sent.payload}')


def test_the_server_gets_lines_if_asked(box):
    """Inlined functions are not sent for rust: the server finds them itself."""
    target = start(box, BUILD / 'targets/inlined')
    ours = expected(target)
    server = box.server()
    profd = box.profile([target], '--dsn', server.dsn, '--symbols', 'lines',
                        env={**STRICT, **server.env})
    sent, = server.envelopes
    check(b'inlined.c' in sent.payload and b'in_header' not in sent.payload, f'{sent.payload}')
    envelope, = profd.envelopes
    stack = waiting_stack(profd)
    frame, = [f for f in stack if f.get('function') == 'outer']
    check((frame['filename'], frame['lineno']) == ours[2][1:], f'{frame}')
    check(in_files([frame])[:2] == ours[:2], f'{frame}')


BUSY = """
#include <stdio.h>
static volatile unsigned sum;
static inline __attribute__((always_inline)) void add(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sum += i;
}
static __attribute__((noinline)) void around(unsigned n)
{
	add(n);
	__asm__ volatile("" ::: "memory");
}
int main(void)
{
	puts("ready");
	fflush(stdout);
	for (;;)
		around(1000000);
}
"""


def self_times(table):
    """Returns the functions of a table with CPU time of their own."""
    return {line.split()[-2] for line in table.splitlines()
            if re.match(r' +\d+\.\d\d s +\d', line)}


def test_the_table(box):
    """The tables of a run and of a recording without a daemon have the inlined function, unless
    --symbols names is given."""
    source, path = box.dir / 'busy.c', box.dir / 'busy'
    source.write_text(BUSY)
    run('gcc', '-O1', '-g', '-o', path, source)
    target = box.start([path])
    target.wait_line('ready')
    for lines in True, False:
        for output in True, False:
            profd = box.profile([target], work=0.3, lines=lines, table=True,
                                output=output or box.dir / f'{lines}.html', env=STRICT)
            found = self_times(profd.stdout)
            check(('add' in found) == lines and ('around' in found) != lines,
                  f'{lines}: {profd.stdout}')
    env = harness.environment(SENTRY_PROFD_SOCKET=str(box.dir / 'none.sock'))
    recorder = box.start([BUILD / 'sentry-profctl', 'record', target.pid, '--to', 'summary', '-d',
                          '1'], env=env)
    check(recorder.wait() == 0 and 'add' in self_times(recorder.stdout) and
          'no source lines' not in recorder.stderr, f'{recorder.stdout}{recorder.stderr}')


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise Skip(f'no {tool}')


def test_formats(box):
    """DWARF 4 and 5 of both compilers, with each kind of compression."""
    need('gcc', 'clang', 'objcopy')
    source = ROOT / 'tests/targets/inlined.c'
    for compiler in ('gcc', 'clang'):
        for version in ('4', '5'):
            path = box.dir / f'{compiler}-{version}'
            run(compiler, '-O2', '-g', f'-gdwarf-{version}', '-o', path,
                source)
            check_native(box, start(box, path))
    # 64-bit offsets, units that the linker merges, and line tables only.
    for name, compiler, *flags in (('offsets', 'gcc', '-g', '-gdwarf64'),
                                   ('mixed', 'gcc', '-g', '-flto'),
                                   ('lines', 'clang', '-gline-tables-only')):
        path = box.dir / name
        run(compiler, '-O2', *flags, '-o', path, source)
        check_native(box, start(box, path))
    for kind in ('zlib', 'zlib-gnu', 'zstd'):
        packed = box.dir / kind
        made = subprocess.run(['objcopy', f'--compress-debug-sections={kind}',
                               BUILD / 'targets/inlined', packed],
                              capture_output=True)
        if made.returncode == 0:
            check_native(box, start(box, packed))


def test_separate_file(box):
    need('strip', 'objcopy')
    path = box.dir / 'program'
    debug = box.dir / 'program.debug'
    run('objcopy', '--only-keep-debug', BUILD / 'targets/inlined', debug)
    run('strip', '-o', path, BUILD / 'targets/inlined')
    run('objcopy', f'--add-gnu-debuglink={debug}', path)
    check_native(box, start(box, path))


def end_within_chunk(box, path):
    """Profiles a program as a command that ends before its first chunk does.
    """
    profd = box.profd([], '--symbols', 'lines', *NATIVE, '--', path,
                      env=STRICT)
    pid = int(profd.wait_line(r'ready (\d+)')[1])
    profd.wait_looks()
    os.kill(pid, signal.SIGTERM)
    profd.finish(128 + signal.SIGTERM)
    check_frames(waiting_stack(profd, *NATIVE), expected(profd))


def test_a_command_that_has_ended(box):
    """Lines are read when the chunk ends. The command has ended by then, and
    its files have no names any more."""
    need('strip', 'objcopy')
    program = box.dir / 'program'
    shutil.copy(BUILD / 'targets/inlined', program)
    end_within_chunk(box, program)
    path, debug = box.dir / 'stripped', box.dir / 'stripped.debug'
    run('objcopy', '--only-keep-debug', program, debug)
    run('strip', '-o', path, program)
    run('objcopy', f'--add-gnu-debuglink={debug}', path)
    end_within_chunk(box, path)


def test_a_file_that_was_touched(box):
    """chmod, ln, touch and rm change the change time of a running program's
    file, and not what it says."""
    for change in (lambda path: path.chmod(0o700),
                   lambda path: os.link(path, f'{path}.link'),
                   lambda path: os.utime(path, (0, 0)),
                   lambda path: path.unlink()):
        path = box.make_dir('touched') / 'program'
        shutil.copy(BUILD / 'targets/inlined', path)
        target = start(box, path)
        profd = box.profd([target], '--symbols', 'lines', *NATIVE, env=STRICT)
        profd.wait_attached().wait_looks()
        change(path)
        profd.interrupt()
        check_frames(waiting_stack(profd, *NATIVE), expected(target))
        target.end()


def functions(frames):
    """Returns the functions from the waiting one to the one that libc called.
    """
    seen = places(frames)
    names = [name for name, _, _ in seen]
    return seen[names.index('wait_here') + 1:names.index('main') + 1]


def test_dwz(box):
    """The common debug information of two programs is in a third file, which
    unwind does not open: functions have their lines, and inlined functions,
    which have no name, are omitted."""
    need('dwz')
    for version in ('4', '5'):
        paths = [box.dir / f'{name}-{version}' for name in 'ab']
        for path in paths:
            run('gcc', '-O2', '-g', f'-gdwarf-{version}', '-o', path,
                ROOT / 'tests/targets/inlined.c')
        run('dwz', '-m', box.dir / f'shared-{version}', *paths)
        target = start(box, paths[0])
        ours = expected(target)
        check([name for name, _, _ in ours] ==
              ['inner', 'in_header', 'outer', 'main'], f'{ours}')
        frames = profile(box, target, '--platform', 'native')
        check(functions(frames) == ours[2:], f'{version}: {places(frames)}')


def test_split(box):
    """.dwo files are not searched: there are names, but no lines."""
    need('gcc', 'clang')
    for compiler in ('gcc', 'clang'):
        for version in ('4', '5'):
            path = box.dir / f'{compiler}-{version}'
            run(compiler, '-O2', '-g', f'-gdwarf-{version}', '-gsplit-dwarf',
                '-c', '-o', f'{path}.o', ROOT / 'tests/targets/inlined.c')
            run(compiler, '-o', path, f'{path}.o')
            check(path.with_suffix('.dwo').exists(), 'no .dwo')
            target = start(box, path)
            frames = profile(box, target, '--platform', 'native')
            check(functions(frames) == [('outer', None, None),
                                        ('main', None, None)],
                  f'{compiler} {version}: {places(frames)}')


if __name__ == '__main__':
    harness.main(globals())
