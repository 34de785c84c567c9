"""Mutated ELF files: targets map and execute files in which headers, notes, unwind
tables, symbols, compressed sections, debug information and Go's tables have unlikely
values (mutants.py).

Through the daemon: a wave is a process of user A (tests/targets/mutants.c) that maps the
code of hundreds of mutated files, each of which gets frames on the stacks of its threads,
and some mutated programs that run. A file counts when one of its frames has arrived in a
chunk. Directly: the programs of tests/fuzz read mutated files one after the other, without
a daemon.

What has to hold:
- No process reports a fault whose innermost frame is our own code, and no file takes longer
  than the limits of unwind. A fault in a library (libdw, libelf, liblzma, libzstd, libz) may end
  unwind: the files at which it did are kept, with the stack, in $BUILD/elf_mutants.
- Chunks with names out of these files have no fault that the server finds.
- A process of user A that is not mutated (a bystander) has samples again within RECOVERY_S
  after an end of A's unwind. The storm also kills this unwind itself.
- A bystander of user B loses no samples by that, and B's unwind never ends.

The full form goes on after its seconds until FILES files have been read, of which
BY_DAEMON have come through the daemon.
"""

import collections
import contextlib
import lzma
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import threading
import time

import harness
import mutants
import stranger
from account import check_sums
from envelopes import KEY, PROJECT
from harness import BUILD, Failure, check, wait_for
from upkeep import CHILDREN, REASONS, Arrivals, operator, restarts

SHORT_S = 7

FILES, BY_DAEMON = 20000, 2000
# Files of a wave and of a batch, in the short form and in the full one.
WAVE, BATCH = (60, 300), (40, 250)
PROGRAMS = 4
# A wave whose files have not all arrived ends after so many seconds.
WAVE_S = 40

USER_A, USER_B = stranger.UID, stranger.UID + 1
THREADS = 4
PCS = 4
CHUNK_S = 2
RECOVERY_S = 10
KILL_EVERY_S = 20
SAY_EVERY_S = 60
# Without a sample of a thread for so long, its process is incomplete. A thread of the
# bystanders waits for 0.02 s at a time.
GAP_S = 2
SHORT_GAP_S = 0.3
# These bounds are multiplied by how slow the machine is, up to this.
SLOW_MAX = 4
# The share of a bystander's samples that may be missing because the machine is busy.
MISSED = 0.2
# Processor seconds of a program of tests/fuzz at one file. The limits of unwind for one file
# (lines.h, cfi.c) are a few seconds, and sanitizers make everything slower.
FILE_S = 60
# The programs of tests/fuzz that read files directly, and the bytes of a file that they read.
KINDS = ('mapped', 'elf', 'lines')
DIRECT_MAX = 1 << 20

# Where files are mapped: each has an address of its own in the whole storm.
ADDRESS, OF_WAVE, OF_FILE = 1 << 40, 1 << 33, 1 << 24

# Deaths of unwind without a file that is left out: less than three at each of some files.
DEATHS_MAX = 12

KEPT = BUILD / 'elf_mutants'
# faulty.c: the flags of a faulty file, at an offset in the header.
FAULTY, FAULTY_AT, FAULTY_NAME = 0x0badf11e, 48, 'libelf-faulty.so'
# How sentry-profd-unwind is started with it. The log of the broker would leave out most lines of a
# report.
WRAPPER = '''#!/bin/sh
ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD={faulty} exec {unwind} "$@" 2>>{stderr}
'''

LIBRARIES = re.compile(r'/lib(?:dw|elf|lzma|zstd|z)[-.]|\blib(?:dw|elf|lzma|zstd)/|/faulty\.c:')
# Frames of the sanitizer and of libc say nothing about who called.
NEUTRAL = re.compile(r'/lib(?:asan|ubsan|c)\.so|sanitizer_common|libsanitizer|asan_')
REPORT = re.compile(r'ERROR: AddressSanitizer|runtime error: ')
FRAME = re.compile(r'#\d+ 0x[0-9a-f]+ .*$', re.M)


# The files that are mutated.

def objcopy(path, out, *options):
    subprocess.run(['objcopy', *map(str, options), path, out], check=True)
    return out.read_bytes()


def add_debugdata(path, directory):
    """Returns a file with its symbols in .gnu_debugdata only."""
    packed = directory / 'packed'
    packed.write_bytes(lzma.compress(
        objcopy(path, directory / 'symbols', '--strip-debug'), preset=0))
    return objcopy(path, directory / 'debugdata', '--strip-all', '--add-section',
                   f'.gnu_debugdata={packed}')


def add_debuglink(path, directory):
    """Returns a file without symbols, and its debug file."""
    debug = directory / '00000000.debug'
    objcopy(path, debug, '--only-keep-debug')
    return objcopy(path, directory / 'link', '--strip-all', f'--add-gnu-debuglink={debug}'), \
        debug.read_bytes()


def without_sections(data):
    """Returns a file without section headers: what is left are program headers."""
    data = bytearray(data)
    struct.pack_into('<Q', data, 40, 0)
    struct.pack_into('<3H', data, 58, 0, 0, 0)
    return data


def go_table(functions, text):
    """Returns a .gopclntab of Go 1.20 (lib/unwind/elf/gopclntab.c) for [(start, size)]."""
    names, values, entries, records = b'\0', b'\0', b'', b''
    for start, size in functions:
        # The stack's height is 8 bytes from the first to the last byte.
        length = bytes((size & 0x7f | 0x80, size >> 7 & 0x7f | 0x80, size >> 14))
        record = struct.pack('<5I5I', start - text, len(names), 0, 0, len(values), *[0] * 5)
        entries += struct.pack('<2I', start - text, (2 * len(functions) + 1) * 4 + len(records))
        names += b'main.at_%x\0' % start
        values += b'\x12' + length + b'\0'
        records += record
    end = max(start + size for start, size in functions) - text
    header = struct.pack('<I4B', 0xfffffff1, 0, 0, 1, 8)
    at_values = 72 + len(names)
    at_functions = at_values + len(values)
    words = struct.pack('<8Q', len(functions), 0, text, 72, 72, 72, at_values, at_functions)
    return header + words + names + values + entries + struct.pack('<I', end) + records


def add_go_table(path, directory):
    """Returns a file that looks like one of Go's compiler: with its table, without CFI."""
    base = mutants.Base('', path.read_bytes())
    table, empty = directory / 'gopclntab', directory / 'buildinfo'
    table.write_bytes(go_table(sorted(dict(base.functions).items()), base.code.vaddr))
    empty.write_bytes(b'\xff Go buildinf:'.ljust(32, b'\0'))
    data = objcopy(path, directory / 'go', '--strip-all', '--add-section', f'.gopclntab={table}',
                   '--add-section', f'.go.buildinfo={empty}')
    return without_contents(mutants.Base('', data), ('.eh_frame', '.eh_frame_hdr')).data


def without_contents(base, names):
    """Returns a base with zeros in place of some sections, which then take no room."""
    data = bytearray(base.data)
    for s in base.elf.sections:
        if s.name in names:
            data[s.offset:s.offset + s.size] = bytes(s.size)
    return mutants.Base(base.name, data)


def read_bases(directory):
    """Returns {Base: how often it is mutated}."""
    path = BUILD / 'targets/mutated'
    linked, debug = add_debuglink(path, directory)
    variants = {'plain': path.read_bytes(),
                'debugdata': add_debugdata(path, directory),
                'stripped': objcopy(path, directory / 'stripped', '--strip-all'),
                'no_sections': without_sections(path.read_bytes()),
                'go': add_go_table(path, directory)}
    for how in ('zlib', 'zlib-gnu', 'zstd'):
        # Not every objcopy has zstd.
        with contextlib.suppress(subprocess.CalledProcessError):
            variants[how] = objcopy(path, directory / how, f'--compress-debug-sections={how}')
    bases = {mutants.Base(f'mutated {n}', d, 'pass'): 6 for n, d in variants.items()}
    bases[mutants.Base('mutated link', linked, 'pass',
                       debug=mutants.Base('mutated debug', debug))] = 6
    for name in ('zoo_clang', 'zoo_debug_z', 'zoo_debug_frame', 'zoo_throw', 'zoo_lto',
                 'inlined', 'throws_o2', 'link'):
        bases[mutants.Base(name, (BUILD / 'targets' / name).read_bytes())] = 3
    for path, times in (('/lib/x86_64-linux-gnu/libresolv.so.2', 2),
                        ('/lib/x86_64-linux-gnu/libm.so.6', 0.2), ('/usr/bin/hexyl', 0.3),
                        ('/usr/bin/gron', 0.3)):
        if os.path.exists(path):
            bases[without_contents(
                mutants.Base(os.path.basename(path), pathlib.Path(path).read_bytes()),
                ('.rodata', '.noptrdata', '.data'))] = times
    return bases


# Reports of sanitizers.

def find_reports(text):
    """Returns the complete reports in the stderr of one or more processes."""
    starts = [m.start() for m in REPORT.finditer(text)] + [len(text)]
    found = [text[a:b].partition('==ABORTING') for a, b in zip(starts, starts[1:])]
    return [report for report, end, _ in found if end or 'runtime error' in report]


def innermost(report):
    """Returns the innermost frame that tells whose fault it is; '' if none does. In the sandbox of
    unwind the sanitizer cannot read the names of functions: addr2line does."""
    frame = next((f.strip() for f in FRAME.findall(report) if not NEUTRAL.search(f)), '')
    found = re.search(r' \((/\S+)\+(0x[0-9a-f]+)\)$', frame)
    if not found:
        return frame
    name = subprocess.run(['addr2line', '-fpe', found[1], found[2]], capture_output=True, text=True,
                          check=False).stdout.strip()
    return f'{frame} {name}'


def is_of_library(report):
    """Returns true if a library's code is the innermost. A report of UndefinedBehaviorSanitizer
    is of our own code: only that is compiled with it."""
    return 'AddressSanitizer' in report and bool(LIBRARIES.search(innermost(report)))


def is_faulty(report):
    """Returns true for a fault of tests/targets/faulty.c."""
    return FAULTY_NAME in report or '/faulty.c:' in report


def keep(name, data, text):
    """Stores a file and what happened with it."""
    KEPT.mkdir(exist_ok=True)
    (KEPT / name).write_bytes(data)
    (KEPT / f'{name}.txt').write_text(text)
    return KEPT / name


class Deaths(threading.Thread):
    """Notes when reports begin in a file. The storm itself looks at the file too rarely: while it
    starts a wave it does not."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.times = path, []
        self.over = threading.Event()
        self.start()

    def run(self):
        with open(self.path, encoding='utf-8', errors='replace') as file:
            while not self.over.wait(0.02):
                self.times += [time.time()] * file.read().count('ERROR: AddressSanitizer')

    def end(self):
        self.over.set()
        self.join()


class Direct:
    """A batch of files that a program of tests/fuzz reads."""

    def __init__(self, storm, kind, found):
        self.storm, self.kind = storm, kind
        self.dir = storm.box.make_dir('direct')
        self.mutants = found
        for m in found.values():
            mutants.write(self.dir / m.name, m.data)
        self.at, self.at_s, self.done = None, 0.0, 0
        self.start()

    def start(self):
        paths = [self.dir / name for name in self.mutants]
        self.program = self.storm.box.start([BUILD / 'fuzz' / self.kind, '--whole', *paths])

    def current(self):
        """Returns the name of the file that is read."""
        lines = self.program.stdout.splitlines()
        read = [n for n in (os.path.basename(x) for x in lines) if n in self.mutants]
        return read[-1] if read else None

    def failed(self, what):
        """The program ended, or was ended, at a file. The rest is read by another."""
        name = self.current()
        text = self.program.stderr
        check(name, f'fuzz/{self.kind}: {text}')
        m = self.mutants[name]
        path = keep(f'{self.kind}_{self.storm.seed}_{name}', m.data,
                    f'fuzz/{self.kind} {what}\n{m.base.name}: {m.what}\n{text}')
        check(what != 'takes too long' and is_of_library(text),
              f'fuzz/{self.kind} {what} at {path} ({m.base.name}: {m.what}): '
              f'{innermost(text)} {text[:2000]}')
        self.storm.figures['faults in a library, directly'] += 1
        names = list(self.mutants)
        rest = names[names.index(name) + 1:]
        self.done += len(names) - len(rest)
        self.mutants = {n: self.mutants[n] for n in rest}
        self.storm.forget(self.program)
        if rest:
            self.start()
        return bool(rest)

    def turn(self):
        """Returns true while the batch is not done."""
        if self.program.running():
            used = harness.cpu_seconds(self.program.pid)
            if self.current() != self.at:
                self.at, self.at_s = self.current(), used
            if used - self.at_s > FILE_S:
                self.program.process.kill()
                self.program.wait()
                return self.failed('takes too long')
            return True
        if self.program.process.returncode != 0:
            return self.failed(f'ended with {self.program.process.returncode}')
        self.done += len(self.mutants)
        self.storm.forget(self.program)
        return False

    def end(self):
        self.storm.figures[f'files read directly, {self.kind}'] += self.done
        shutil.rmtree(self.dir)


class Wave:
    """A process that maps mutated files, and programs that are mutated."""

    def __init__(self, storm, number, n):
        self.storm, self.number = storm, number
        self.dir = storm.box.make_dir('wave')
        self.mutants = [storm.mutate() for _ in range(n)]
        self.faulty = self.make_faulty() if storm.full or number == 0 else None
        self.programs = []
        first = ADDRESS + number * OF_WAVE
        (self.dir / 'list').write_text(
            ''.join(storm.line(self.dir, first + slot * OF_FILE, m)
                    for slot, m in enumerate(self.mutants)))
        self.began = time.monotonic()

    def start(self):
        self.program = self.storm.start(self.storm.exe('mutants'), self.dir / 'list', THREADS)
        self.program.wait_line('ready.*')
        for _ in range(PROGRAMS):
            self.run_program()

    def make_faulty(self):
        """Replaces one of the files by one at which unwind dies; returns its path."""
        base = next(b for b in self.storm.bases if b.name == 'mutated plain')
        data = bytearray(base.data)
        struct.pack_into('<I', data, FAULTY_AT, FAULTY)
        n = self.storm.rng.randrange(len(self.mutants))
        name = self.mutants[n].name
        self.mutants[n] = mutants.Mutant(name, base, bytes(data), ['faulty'])
        return str(self.dir / name)

    def is_left_out(self):
        """Returns true if unwind reads the faulty file no more."""
        self.storm.check_health()
        found = self.storm.control.status()['daemon']['files_left_out']
        return {'file': self.faulty, 'uid': USER_A, 'deaths': 3} in found

    def run_program(self):
        m = mutants.mutate(self.storm.runs, self.storm.new_name(), self.storm.rng)
        path = self.storm.dir / 'run' / m.name
        path.write_bytes(m.data)
        path.chmod(0o755)
        program = self.storm.start(path, 'work')
        self.programs.append((program, path))

    def slots(self):
        first = (ADDRESS + self.number * OF_WAVE) // OF_FILE
        return set(range(first, first + len(self.mutants)))

    def is_over(self):
        return self.slots() <= self.storm.seen or time.monotonic() - self.began > WAVE_S

    def end(self):
        figures = self.storm.figures
        check(self.program.running(), f'the target has ended: {self.program.report()}')
        if self.faulty:
            wait_for(self.is_left_out, f'{self.faulty} is left out')
            figures['faulty files'] += 1
        self.storm.forget(self.program)
        figures['files mapped'] += len(self.mutants)
        figures['files that came through the daemon'] += len(self.slots() & self.storm.seen)
        for program, path in self.programs:
            figures['mutated programs'] += 1
            figures['mutated programs that ran'] += program.running()
            figures['mutated programs that were profiled'] += \
                bool(self.storm.times.get(program.pid))
            self.storm.forget(program)
            path.unlink()
        figures['waves'] += 1
        shutil.rmtree(self.dir)


class Storm:
    def __init__(self, box, rng, full):
        self.box, self.rng, self.full = box, rng, full
        self.seed = f'{rng.getrandbits(32):08x}'
        self.figures = collections.Counter()
        self.seen = set()   # addresses // OF_FILE of frames that have arrived
        self.times = collections.defaultdict(list)  # {thread: [second of a sample]}
        self.kills, self.slow = 0, 1.0
        self.wave = None
        self.n = 0
        self.reports, self.stderr_size = [], -1
        self.dir = box.make_dir('elf')
        self.stderr = box.dir / 'unwind.stderr'
        self.stderr.touch()
        for name in ('bin', 'run', 'bases', 'exes'):
            (self.dir / name).mkdir()
        self.bases = read_bases(self.dir / 'bases')
        self.runs = mutants.Base('churn', (BUILD / 'targets/churn').read_bytes(), runs=True)
        self.server = box.server(tls=False)
        self.arrivals = Arrivals(self.server)
        self.start_daemon()

    # The processes.

    def exe(self, name):
        """Returns the path of a copy of the program that other users may execute."""
        path = self.dir / 'bin' / name
        if not path.exists():
            shutil.copy(BUILD / 'targets' / name, path)
            path.chmod(0o755)
        return path

    def start(self, *argv, uid=USER_A):
        return self.box.start(argv, **stranger.options(uid))

    def forget(self, program):
        """Ends a program, and removes its files."""
        program.end()
        self.box.programs.remove(program)
        program.out_path.unlink()
        program.err_path.unlink()

    def start_daemon(self):
        path, self.socket = self.dir / 'profd.conf', self.dir / 'socket'
        text = (f'[sentry]\ndsn = http://{KEY}@127.0.0.1:{self.server.port}/{PROJECT}\n'
                f'[profiler]\nchunk_seconds = {CHUNK_S}\nsymbols = lines\n')
        for name, exe in (('bin', self.dir / 'bin/*'), ('run', self.dir / 'run/*')):
            text += (f'[target "{name}"]\nautostart = yes\nexe = {exe}\nmin_age_seconds = 0\n'
                     'profile_session_sample_rate = 1\nmax_instances = 100\n'
                     f'release = {name}@1\n')
        path.write_text(text)
        path.chmod(0o600)
        self.profd = self.box.profd([], '--config', path, '--socket', self.socket,
                                    output=False, exe=self.make_exes() / 'sentry-profd')
        self.deaths = Deaths(self.stderr)
        self.control = operator(self.box, self.profd, self.socket)
        # The first one has the first unwind process.
        self.other = self.bystander(USER_B)
        self.of_b, = wait_for(self.unwinds, 'an unwind process')
        self.same = self.bystander(USER_A)
        self.of_a = wait_for(self.find_of_a, 'another unwind process')

    def make_exes(self):
        """Copies the daemon's executables, with a wrapper for unwind."""
        directory = self.dir / 'exes'
        for name in stranger.EXECUTABLES:
            shutil.copy(BUILD / name, directory)
        unwind = directory / 'sentry-profd-unwind'
        real, faulty = directory / 'sentry-profd-unwind.real', directory / FAULTY_NAME
        unwind.rename(real)
        shutil.copy(BUILD / 'targets/faulty', faulty)
        unwind.write_text(WRAPPER.format(unwind=real, faulty=faulty, stderr=self.stderr))
        unwind.chmod(0o755)
        return directory

    def bystander(self, uid):
        """Starts a process like that of a wave, with two files that are not mutated: its stacks
        change with every sample."""
        base = next(b for b in self.bases if b.name == 'mutated plain')
        directory = self.box.make_dir('bystander')
        found = [mutants.Mutant(f'plain_{n}', base, base.data, []) for n in range(2)]
        (directory / 'list').write_text(
            ''.join(self.line(directory, ADDRESS // 2 + n * OF_FILE, m)
                    for n, m in enumerate(found)))
        program = self.start(self.exe('mutants'), directory / 'list', 2, uid=uid)
        program.wait_line('ready.*')
        self.control.wait_state(program.pid, 'profiling')
        return program

    def unwinds(self):
        return self.profd.helpers()['unwind']

    def find_of_a(self):
        return next((p for p in self.unwinds() if p != self.of_b), 0)

    # The files.

    def new_name(self):
        self.n += 1
        return f'{self.n:08x}'

    def mutate(self, condition=lambda base: True):
        found = [b for b in self.bases if condition(b)]
        base, = self.rng.choices(found, [self.bases[b] for b in found])
        return mutants.mutate(base, self.new_name(), self.rng)

    def line(self, directory, bias, m):
        """Writes a file; returns its line for tests/targets/mutants.c."""
        path = directory / m.name
        mutants.write(path, m.data)
        if m.debug:
            mutants.write(directory / f'{m.name}.debug', m.debug)
        code = m.base.code
        before = code.offset % mutants.PAGE
        call = bias + m.base.call if m.base.call else 0
        pcs = m.base.pcs(self.rng, PCS)
        return (f'{bias + code.vaddr - before:x} {code.offset - before:x} '
                f'{code.filesz + before:x} {call:x} {path} ' +
                ' '.join(f'{bias + pc:x}' for pc in pcs) + '\n')

    def new_batch(self):
        def is_small(base):
            return len(base.data) <= DIRECT_MAX // 2
        found = [self.mutate(is_small) for _ in range(BATCH[self.full])]
        self.figures['batches'] += 1
        return Direct(self, KINDS[self.figures['batches'] % len(KINDS)],
                      {m.name: m for m in found})

    def files(self):
        return self.figures['files that came through the daemon'] + \
            sum(n for what, n in self.figures.items() if what.startswith('files read directly'))

    # What has to hold.

    def read_arrivals(self):
        """Reads, and removes, the chunks that have come."""
        for chunk in self.arrivals.chunks():
            self.take_chunk(chunk)

    def take_chunk(self, chunk):
        self.figures['chunks'] += 1
        profile = chunk['profile']
        for frame in profile['frames']:
            address = int(frame['instruction_addr'], 16)
            if ADDRESS <= address < 64 * ADDRESS:
                self.seen.add(address // OF_FILE)
                self.figures['frames with a name'] += 'function' in frame
                self.figures['frames with a line'] += 'lineno' in frame
        for sample in profile['samples']:
            self.times[int(sample['thread_id'])].append(sample['timestamp'])

    def check_health(self):
        size = self.stderr.stat().st_size
        if size != self.stderr_size:
            self.stderr_size = size
            before = len(self.reports)
            self.reports = [r for r in find_reports(self.unwind_text())
                            if not self.is_of_our_kill(r)]
            for report in self.reports[before:]:
                self.check_report(report)
            left_out = self.profd.stderr.count('because sentry-profd-unwind has died 3 times at')
            check(len(self.reports) <= 3 * left_out + DEATHS_MAX,
                  'unwind dies again and again, and no file is left out')
        check(self.profd.running(), 'the broker has ended: status '
              f'{self.profd.process.returncode}')
        check(self.of_b in self.unwinds(), 'the unwind of user B has ended: '
              f'{self.profd.stderr[-3000:]}')
        self.of_a = self.find_of_a()

    def unwind_text(self):
        return self.stderr.read_text(errors='replace')

    def check_report(self, report):
        """A fault of unwind. The files of the wave are kept, since one of them is the cause."""
        if is_faulty(report):
            return
        path = KEPT / f'wave_{self.seed}_{self.wave.number if self.wave else 0}'
        if self.wave and not path.exists():
            shutil.copytree(self.wave.dir, path)
            path.with_suffix('.txt').write_text(report)
        check(is_of_library(report), f'fault in unwind, at a file in {path}: {innermost(report)}'
              f'\n{report[:2000]}')

    @staticmethod
    def is_of_our_kill(report):
        return f' address 0x{os.getuid() << 32 | os.getpid():012x} ' in report

    def kill(self):
        """Kills A's unwind, if there is one at the moment."""
        if not self.of_a:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.of_a, self.rng.choice((signal.SIGKILL, signal.SIGSEGV)))
            self.deaths.times.append(time.time())
            self.kills += 1

    def check_restarts(self):
        """No process ended but by our kills and by the faults that were reported."""
        found = restarts(self.control)
        self.check_health()
        reports = len(self.reports)
        faulty = sum(map(is_faulty, self.reports))
        self.figures['deaths of unwind at faulty files'] = faulty
        self.figures['faults in a library, in unwind'] = reports - faulty
        self.figures['kills of unwind'] = self.kills
        for process in CHILDREN:
            n = {reason: found[process, reason] for reason in REASONS}
            allowed = self.kills + reports if process == 'unwind' else 0
            check(sum(n.values()) <= allowed, f'{process} was started again {n}; kills: '
                  f'{self.kills}, reports: {reports}: {self.profd.stderr[-3000:]}'
                  f'{self.unwind_text()[-3000:]}')

    def gaps(self, program):
        """Returns the times without a sample of the program's first thread: [(from, to)]."""
        times = sorted(self.times[program.pid])
        return [(a, b) for a, b in zip(times, times[1:]) if b - a > SHORT_GAP_S]

    def check_recovery(self):
        """A's bystander is complete, but for RECOVERY_S after an end of A's unwind, which also
        loses the open chunk; B's is complete."""
        slow = min(SLOW_MAX, max(self.slow, harness.stretch()))
        self.figures['times slower than an idle machine, at most'] = round(slow, 1)
        worst = 0.0
        for a, b in self.gaps(self.same):
            ended = max((d for d in self.deaths.times if d < b), default=a)
            if b - ended < RECOVERY_S * slow:
                worst = max(worst, b - ended)
            else:
                check(b - a < GAP_S * slow, f'A\'s bystander had no sample for {b - a:.1f} s, up '
                      f'to {b - ended:.1f} s after an end of unwind')
        self.figures["seconds until A's bystander was complete"] = round(worst, 2)
        longest = max((b - a for a, b in self.gaps(self.other)), default=0)
        self.figures["longest gap of B's bystander, s"] = round(longest, 2)
        check(longest < GAP_S * slow, f"B's bystander had no sample for {longest:.1f} s")

    def check_stats(self):
        stats = self.profd.stats
        check_sums(stats)
        for f in stats['targets']:
            missed, expected = f['missed'], f['samples_expected']
            if f['pid'] == self.other.pid:
                rate = expected / f['duration_s'] / 2
                self.figures["samples of B's bystander, Hz a thread"] = round(rate, 1)
                self.figures["missed samples of B's bystander"] = sum(missed.values())
                check(75 < rate < 110, f'{rate} samples a second: {f}')
                check(not missed.get('no_unwind') and not missed.get('ring_full') and
                      sum(missed.values()) < MISSED * expected, f'B misses samples: {f}')
        self.figures['files left out'] = stats['files_left_out']
        self.figures['peak memory of an unwind, MB'] = \
            stats['rss_peak_bytes']['unwind'] >> 20

    def end(self):
        last = len(self.times[self.same.pid])
        wait_for(lambda: self.read_arrivals() or len(self.times[self.same.pid]) > last,
                 'samples of A\'s bystander')
        self.check_restarts()
        self.check_recovery()
        self.profd.signal(signal.SIGTERM)
        self.profd.finish()
        self.check_stats()
        for program in (self.same, self.other):
            check(program.running(), f'a bystander has ended: {program.report()}')

    def remove_reports(self):
        """Removes the reports of libraries from unwind's stderr: a report there fails a test. All
        of them have been checked."""
        text = self.unwind_text()
        for report in find_reports(text):
            if is_of_library(report):
                text = text.replace(report, '')
        self.stderr.write_text(text)

    def end_wave(self):
        self.wave.end()
        self.wave = None

    def run(self, seconds):
        began = time.monotonic()
        kill_at = began + min(seconds / 2, KILL_EVERY_S)
        say_at = began + SAY_EVERY_S
        number, batch = 0, self.new_batch()

        def goes_on():
            return time.monotonic() < began + seconds or self.full and (
                self.files() < FILES or
                self.figures['files that came through the daemon'] < BY_DAEMON)
        while goes_on():
            if not self.wave:
                self.wave = Wave(self, number, WAVE[self.full])
                self.wave.start()
                number += 1
            if not batch.turn():
                batch.end()
                batch = self.new_batch()
            self.read_arrivals()
            self.check_health()
            if self.wave.is_over():
                self.end_wave()
            if time.monotonic() > kill_at:
                self.check_restarts()
                self.slow = max(self.slow, harness.stretch())
                self.kill()
                kill_at = time.monotonic() + KILL_EVERY_S
            if time.monotonic() > say_at:
                print(f'  {self.files()} files after {time.monotonic() - began:.0f} s', flush=True)
                say_at += SAY_EVERY_S
            time.sleep(0.05)
        if self.wave:
            self.end_wave()
        self.forget(batch.program)
        batch.end()
        self.figures['files in all'] = self.files()
        self.figures['seconds'] = round(time.monotonic() - began)


def run(box, seconds, rng):
    stranger.need_root()
    storm = Storm(box, rng, seconds > SHORT_S)
    try:
        storm.run(seconds)
        storm.end()
    except (Failure, OSError) as e:
        text = e if isinstance(e, Failure) else f'{type(e).__name__}: {e}'
        raise Failure(f'{text}; after {dict(storm.figures)}') from e
    finally:
        storm.deaths.end()
        storm.remove_reports()
    return storm.figures
