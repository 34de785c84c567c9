#!/usr/bin/python3
"""sentry-profctl convert --symbolize: adds the missing names to a profile,
from files."""

import ctypes
import http.server
import json
import os
import pty
import shutil
import subprocess
import threading
import time

import harness
from harness import BUILD, ROOT, Skip, check

# A sandboxed process that makes a forbidden call is killed.
STRICT = harness.environment(SENTRY_PROFD_SECCOMP_KILL='1')
ANOTHER = 'is another file than the one that was profiled'


def run(*argv):
    subprocess.run([str(a) for a in argv], check=True)


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise Skip(f'no {tool}')


def build_id(path):
    text = subprocess.run(['readelf', '-n', path], check=True,
                          capture_output=True, text=True).stdout
    return text.partition('Build ID: ')[2].split()[0]


def capture(box, path, symbols, platform='native'):
    """Returns the chunk of a waiting program."""
    target = box.start([path])
    target.wait_line('ready.*')
    harness.wait_for(lambda: harness.blocked(target.pid), 'it waits')
    profd = box.profile([target], '--symbols', symbols, '--platform', platform,
                        env=STRICT)
    target.end()
    chunk, = profd.chunks
    return chunk


def convert(box, chunk, *options, to='json', env=None, status=0):
    """Returns its output and standard error."""
    path = box.dir / 'chunk.json'
    path.write_text(json.dumps(chunk))
    done = subprocess.run(
        [BUILD / 'sentry-profctl', 'convert', path, '--to', to, *options],
        capture_output=True, text=True, env=env or STRICT, check=False)
    check(done.returncode == status, f'{done.returncode}: {done.stderr}')
    out = json.loads(done.stdout) if to == 'json' else done.stdout
    return out, done.stderr


def symbolize(box, chunk, env=None):
    return convert(box, chunk, '--symbolize', env=env)


def deepest(chunk):
    frames = chunk['profile']['frames']
    return [frames[i] for i in max(chunk['profile']['stacks'], key=len)]


def places(chunk, among=None):
    return [(f.get('function'), f.get('abs_path'), f.get('lineno'))
            for f in deepest(chunk)
            if among is None or f.get('package') == str(among)]


def check_warned(stderr, path, reason):
    lines = [l for l in stderr.splitlines() if str(path) in l]
    check(len(lines) == 1 and reason in lines[0], f'{reason}: {stderr!r}')


class Program:
    """A stripped program, and its debug file."""

    def __init__(self, box, name='program', linked=True):
        need('objcopy', 'strip', 'readelf')
        directory = box.make_dir(name)
        self.whole = BUILD / 'targets/inlined'
        self.path = directory / 'program'
        self.debug = directory / 'program.debug'
        run('objcopy', '--only-keep-debug', self.whole, self.debug)
        run('strip', '-o', self.path, self.whole)
        if linked:
            run('objcopy', f'--add-gnu-debuglink={self.debug}', self.path)


def test_as_at_capture(box):
    """The functions, files, lines and inlined functions equal those of
    --symbols lines."""
    path = BUILD / 'targets/inlined'
    wanted = places(capture(box, path, 'lines'))
    check(('main', 'tests/targets/inlined.c') in [w[:2] for w in wanted],
          f'{wanted}')
    bare = capture(box, path, 'none')
    check(not any(name in str(bare) for name in ('in_header', 'wait_here')),
          'no names')
    found, stderr = symbolize(box, bare)
    check(places(found) == wanted, f'{places(found)}, not {wanted}')
    check(str(path) not in stderr, stderr)
    # A second run changes nothing, and neither does a run with complete names.
    check(places(symbolize(box, found)[0]) == wanted, 'twice')
    named = capture(box, path, 'names')
    check(places(symbolize(box, named)[0]) == wanted, 'with names before')
    lines = capture(box, path, 'lines')
    check(places(symbolize(box, lines)[0]) == wanted, 'with lines before')
    # Other formats have the same stacks.
    folded, _ = convert(box, bare, '--symbolize', to='folded')
    check(';main;outer;in_header;inner;wait_here;' in folded, folded)


def test_debug_link(box):
    program = Program(box)
    bare = capture(box, program.path, 'none')
    found, stderr = symbolize(box, bare)
    wanted = places(capture(box, program.path, 'lines'))
    check('in_header' in str(wanted) and places(found) == wanted,
          f'{places(found)}, not {wanted}')
    check(str(program.path) not in stderr, stderr)


def test_without_debug_file(box):
    """If the files have no names, frames are named by the starts of their
    functions, as at capture, and a line says so."""
    program = Program(box, linked=False)
    bare = capture(box, program.path, 'none')
    found, stderr = symbolize(box, bare)
    wanted = places(capture(box, program.path, 'lines'), program.path)
    ours = places(found, program.path)
    # _start is named by its own address if its start is not known.
    check(ours == wanted and len(ours) > 2, f'{ours}, not {wanted}')
    check_warned(stderr, program.path, 'has no names and no lines')


def test_platform_rust(box):
    """Also inlined functions; names are mangled in the payload only."""
    need('g++')
    path = box.dir / 'mangled'
    source = box.dir / 'mangled.cc'
    source.write_text('''
#include <cstdio>
#include <ctime>
#include <unistd.h>
namespace space {
static const timespec t = {1, 0};
inline __attribute__((always_inline)) void inlined(int n)
{
	while (n)
		nanosleep(&t, nullptr);
}
__attribute__((noinline)) void around(int n) { inlined(n); puts(""); }
}
int main() { puts("ready"); fflush(stdout); space::around(getpid()); }
''')
    run('g++', '-O2', '-g', '-o', path, source)
    bare = capture(box, path, 'none', platform='rust')
    names = [name for name, _, _ in places(symbolize(box, bare)[0], path)]
    check(names[:3] == ['_ZN5space7inlinedEi', '_ZN5space6aroundEi', 'main'],
          f'{names}')
    folded, _ = convert(box, bare, '--symbolize', to='folded')
    check(';main;space::around(int);space::inlined(int);' in folded, folded)


def without_code_id(chunk):
    chunk = json.loads(json.dumps(chunk))
    for image in chunk['debug_meta']['images']:
        del image['code_id']
    return chunk


def test_another_file(box):
    """A file is used only if its build-id is the chunk's: all of it, or its
    first 16 bytes."""
    path = box.dir / 'program'

    def build(identity):
        run('gcc', '-O2', '-g', '-o', path, f'-Wl,--build-id=0x{identity}',
            ROOT / 'tests/targets/inlined.c')

    build('11' * 20)
    bare = capture(box, path, 'none')
    short = without_code_id(bare)
    for chunk in bare, short:
        check('in_header' in str(symbolize(box, chunk)[0]), 'the same file')
    # A build-id with the same first 16 bytes.
    path.unlink()
    build('11' * 16 + '22' * 4)
    check('in_header' in str(symbolize(box, short)[0]), 'the same 16 bytes')
    found, stderr = symbolize(box, bare)
    check(places(found, path) == places(bare, path), f'{places(found)}')
    check_warned(stderr, path, ANOTHER)
    path.unlink()
    build('33' * 20)
    for chunk in bare, short:
        found, stderr = symbolize(box, chunk)
        check('in_header' not in str(found), f'{places(found)}')
        check_warned(stderr, path, ANOTHER)
    path.unlink()
    found, stderr = symbolize(box, bare)
    check(places(found, path) == places(bare, path), f'{places(found)}')
    check_warned(stderr, path, 'No such file')


def test_hostile_files(box):
    """Broken or missing files cause a line each, and the rest is symbolized as
    usual."""
    path = box.dir / 'program'
    shutil.copy(BUILD / 'targets/inlined', path)
    bare = capture(box, path, 'none')
    whole = path.read_bytes()
    path.unlink()
    broken = {f'cut at {n}': whole[:n]
              for n in (1, 63, 64, 100, 5000, len(whole) // 2)}
    broken['garbage'] = os.urandom(len(whole))
    broken['garbage behind a header'] = whole[:64] + os.urandom(len(whole) - 64)
    broken['a segment without end'] = \
        whole[:64] + whole[64:1000].replace(b'\0\0\0\0', b'\xff' * 4) + whole[1000:]
    for name, data in broken.items():
        path.write_bytes(data)
        found, stderr = symbolize(box, bare)
        check(len([l for l in stderr.splitlines() if str(path) in l]) == 1,
              f'{name}: {stderr!r}')
        check('in_header' not in str(found) and 'clock_nanosleep' in str(found),
              f'{name}: {places(found)}')
    # The data after the build-id may be anything, and must do no harm.
    for at in range(0, len(whole), len(whole) // 40):
        data = bytearray(whole)
        data[at:at + 64] = os.urandom(64)
        path.write_bytes(data)
        symbolize(box, bare)
    path.unlink()
    for make in (os.mkfifo, os.mkdir):
        make(path)
        check_warned(symbolize(box, bare)[1], path, 'is not a regular file')
        os.rmdir(path) if path.is_dir() else path.unlink()
    # A hostile name is escaped for the terminal.
    for image in bare['debug_meta']['images']:
        if image['code_file'] == str(path):
            image['code_file'] = '/x\x1b[31m\ny'
    stderr = symbolize(box, bare)[1]
    check('\x1b' not in stderr and '\ny' not in stderr, f'{stderr!r}')


def test_hostile_chunks(box):
    """Nonsensical images and addresses."""
    bare = capture(box, BUILD / 'targets/inlined', 'none')
    top = '0xffffffffffffffff'
    for frame in bare['profile']['frames'][::2]:
        frame['instruction_addr'] = top
    symbolize(box, bare)
    images = bare['debug_meta']['images']
    for size, address in ((1 << 62, '0x0'), (0, '0x0'), (1 << 62, '0x1000')):
        images[0].update(image_addr=address, image_size=size)
        symbolize(box, bare)
    for member in ('code_id', 'debug_id'):
        for image in images:
            image[member] = '../' * 2000
        found, stderr = symbolize(box, bare)
        check('in_header' not in str(found), f'{member}: {places(found)}')
    del bare['debug_meta']
    symbolize(box, bare)


class Debuginfod:
    """A server that sends a debug file in pieces."""

    def __init__(self, files, pause=0.0, silent=False):
        self.asked = []
        self.silent = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                if silent:
                    outer.silent.wait(30)
                    return
                _, kind, identity, what = self.path.split('/')
                data = files.get(identity)
                if (kind, what) != ('buildid', 'debuginfo') or data is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header('Content-Length', str(len(data)))
                self.end_headers()
                half = len(data) // 2
                self.wfile.write(data[:half])
                time.sleep(pause)
                self.wfile.write(data[half:])

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.silent.set()
        self.server.shutdown()
        self.server.server_close()

    def environment(self, box, **others):
        cache = box.make_dir('cache')
        shutil.rmtree(cache)
        return {**STRICT, 'DEBUGINFOD_CACHE_PATH': str(cache),
                'DEBUGINFOD_URLS':
                f'http://127.0.0.1:{self.server.server_port}', **others}


def need_debuginfod():
    try:
        ctypes.CDLL('libdebuginfod.so.1')
    except OSError:
        raise Skip('no libdebuginfod.so.1 (Debian: libdebuginfod1)') from None


def test_debuginfod(box):
    """The debug file of a stripped file, and that of a file that does not
    exist here any more."""
    need_debuginfod()
    program = Program(box, linked=False)
    wanted = places(capture(box, BUILD / 'targets/inlined', 'lines'))
    bare = capture(box, program.path, 'none')
    identity = build_id(program.path)
    files = {identity: program.debug.read_bytes()}
    with Debuginfod(files) as server:
        found, stderr = symbolize(box, bare, server.environment(box))
        check(places(found) == wanted, f'{places(found)}, not {wanted}')
        check(server.asked.count(f'/buildid/{identity}/debuginfo') == 1,
              f'{server.asked}')
        check(str(program.path) not in stderr, stderr)
        # For a profile without whole build-ids no server is asked.
        asked = len(server.asked)
        found, stderr = symbolize(box, without_code_id(bare),
                                  server.environment(box))
        check('in_header' not in str(found), f'{places(found)}')
        check(len(server.asked) == asked, f'{server.asked}')
        program.path.unlink()
        env = server.environment(box)
        found, stderr = symbolize(box, bare, env)
        check(places(found) == wanted, f'{places(found)}, not {wanted}')
        check(str(program.path) not in stderr, stderr)
        # The file is now in the cache, which is not used without the variable.
        asked = len(server.asked)
        check(places(symbolize(box, bare, env)[0]) == wanted, 'cached')
        check(len(server.asked) == asked, f'{server.asked}')
        del env['DEBUGINFOD_URLS']
        found, stderr = symbolize(box, bare, env)
        check('in_header' not in str(found), f'{places(found)}')
        check_warned(stderr, program.path, 'No such file')


def test_debuginfod_that_lies(box):
    """The debug file of another file is refused; a broken one does no harm."""
    need_debuginfod()
    program = Program(box, linked=False)
    bare = capture(box, program.path, 'none')
    identity = build_id(program.path)
    other = box.dir / 'other'
    run('gcc', '-O2', '-g', '-Wl,--build-id=0x' + '44' * 20, '-o', other,
        ROOT / 'tests/targets/inlined.c')
    program.path.unlink()
    for data in other.read_bytes(), b'nonsense', program.debug.read_bytes()[:3000]:
        with Debuginfod({identity: data}) as server:
            found, stderr = symbolize(box, bare, server.environment(box))
        check(f'/buildid/{identity}/debuginfo' in server.asked, 'it is asked')
        check('in_header' not in str(found), f'{places(found)}')
        check_warned(stderr, program.path, '')


def test_debuginfod_that_hangs(box):
    need_debuginfod()
    program = Program(box, linked=False)
    bare = capture(box, program.path, 'none')
    program.path.unlink()
    with Debuginfod({}, silent=True) as server:
        env = server.environment(box, DEBUGINFOD_TIMEOUT='1')
        found, stderr = symbolize(box, bare, env)
    check(stderr.count('debuginfod servers') == 1 and
          'asking debuginfod servers for a debug file failed: Connection timed '
          'out: no server is asked for further files' in stderr, stderr)
    check(len(server.asked) == 1, f'{server.asked}')
    check('in_header' not in str(found), f'{places(found)}')


def test_progress(box):
    """A progress line on a terminal while a file is fetched. It is removed
    afterwards."""
    need_debuginfod()
    program = Program(box, linked=False)
    bare = capture(box, program.path, 'none')
    program.path.unlink()
    path = box.dir / 'chunk.json'
    path.write_text(json.dumps(bare))
    identity = build_id(BUILD / 'targets/inlined')
    with Debuginfod({identity: program.debug.read_bytes()},
                    pause=2.5) as server:
        ours, theirs = pty.openpty()
        done = subprocess.run(
            [BUILD / 'sentry-profctl', 'convert', path, '--symbolize', '--to',
             'folded'], stderr=theirs, stdout=subprocess.PIPE, check=True,
            env=server.environment(box))
        os.close(theirs)
        text = b''
        try:
            while part := os.read(ours, 4096):
                text += part
        except OSError:
            pass
        os.close(ours)
    check(b'in_header' in done.stdout, done.stdout)
    shown = f'\rdebuginfod: {identity}: 0.0 of 0.0 MB\x1b[K'.encode()
    check(shown in text, f'{text}')
    check(text.rfind(b'\r\x1b[K') > text.rfind(b'MB\x1b[K'), f'{text}')


def test_without_unwind(box):
    """If the executable that reads files is missing, that is reported, and no
    output is written."""
    bare = capture(box, BUILD / 'targets/inlined', 'none')
    alone = box.dir / 'sentry-profctl'
    shutil.copy(BUILD / 'sentry-profctl', alone)
    path = box.dir / 'chunk.json'
    path.write_text(json.dumps(bare))
    if os.path.exists('/usr/local/libexec/sentry-profd/sentry-profd-unwind'):
        raise Skip('it is installed')
    done = subprocess.run([alone, 'convert', path, '--symbolize', '--to',
                           'folded'], capture_output=True, text=True,
                          env=STRICT, check=False)
    check(done.returncode == 1 and done.stdout == '' and
          'sentry-profd-unwind cannot be started' in done.stderr,
          f'{done.returncode}: {done.stderr}')


if __name__ == '__main__':
    harness.main(globals())
