"""Bombs: targets that are small to make and cost their profiler much.

A bomb is a function of this module with the decorator bomb: it starts one or more
processes of user ATTACKER and returns those to attach. Beside them run three honest
processes (bystanders): of the attacker, of another user, and of root. While a bomb is
attached, and until its own profile has come to the server, these have to be complete:
those of other users miss few samples, and after it all three have samples and named
functions. The daemon has to live, to lose no child process, and to say nothing that
controls a terminal. Memory of its processes has bounds, and the table at the end
shows time, processor time and memory for each bomb.

The short form sets off SHORT_N of the bombs that are quick, all at once. Otherwise
each bomb is set off once, in random order, and then some at once until the time is
over. BOMB=PATTERN in the environment chooses bombs by name.
"""

import functools
import os
import pathlib
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time

import bomb_files
import harness
import sanitized
import stranger
import test_hung
import test_namespaces
from account import check_sums
from bomb_files import SHT_STRTAB, SHT_SYMTAB, SHF_COMPRESSED, Section
from bomb_ground import (ATTACKER, HOLD_S, Ground, Meter, address_of,
                         original)
from churn import Makers
from harness import BUILD, Failure, Skip, check, wait_for
from upkeep import restarts

SHORT_S, SHORT_N = 10, 4

KB, MB, GB, TB = 1 << 10, 1 << 20, 1 << 30, 1 << 40

LOOK_S = 0.1
# A bomb that keeps a bystander incomplete for longer has no end; nor has one that costs
# unwind so much processor time. With AddressSanitizer malloc() takes ten times as long.
WAIT_S = 300
CPU_MAX_S = 100 if sanitized.is_sanitized() else 20
# The share of samples that a bystander of another user may miss during a bomb. On
# an idle machine none is missed.
MISSED_MAX = 0.25
# The bounds of memory above the level before. The broker, its helper and capture have
# tables only. unwind reads two sections of 128 MB at a time, and keeps 256 MB.
MEMORY_MAX_MB = {'broker': 64, 'files': 128, 'capture': 128, 'unwind': 768,
                 'ship': 128}
# AddressSanitizer keeps so much freed memory, and has a shadow of the rest.
SANITIZED_MB = 320 if sanitized.is_sanitized() else 0
# Pids that are left to other programs.
SPARE_PIDS = 16000

# Sequences that clear the screen and set the title, formats, quotes, and bytes
# that are no UTF-8.
EVIL_NAMES = [b'\x1b[2J\x1b[31mred', b'a\nb\tc\rd', b'%s%n%n%s%p', b'\xff\xfe\x80',
              b'"\\"}],{', b'\xed\xa0\x80\xf4\x90\x80\x80', b'\xc2\x9b31m',
              b') R 1 1 (', b'\xe2\x80\xae\xe2\x81\xa6', b' ', b'x' * 15]


BOMBS = {}


def bomb(quick=False, has_chunk=True, uid=ATTACKER, hangs=False,
         missed_max=MISSED_MAX):
    """quick: in the short form, too. has_chunk: its profile comes to the server. uid: of
    its processes. hangs: capture may have to be replaced. missed_max: the share of samples
    that a bystander of another user may miss meanwhile."""
    def register(function):
        function.quick, function.has_chunk = quick, has_chunk
        function.uid, function.hangs = uid, hangs
        function.missed_max = 1 if hangs else missed_max
        BOMBS[function.__name__] = function
        return function
    return register


# Symbols, call frame information and other sections.

def symtab(content, strings=b'\0x\0', **keys):
    return [Section('.symtab', content, SHT_SYMTAB, link='.strtab',
                    entry_size=24, **keys),
            Section('.strtab', strings, SHT_STRTAB)]


@bomb(quick=True)
def symbols_of_4_gb(ground):
    """Tables of symbols and of names that are holes of 4 GB."""
    return [ground.forged(symtab(4 * GB, 4 * GB))]


@bomb()
def symbols_up_to_the_limit(ground):
    """As many symbols as are read, all at one address, with long names that differ
    in their last byte only."""
    at, _ = address_of('bomb_work')
    long = ground.rng.randrange(1000, 4096)
    strings = b'\0' + b'x' * long + b'\0'
    entry = bomb_files.symbols([(1, at, 16)])[24:]
    table = bytes(24) + entry * ((128 * MB - 24) // 24)
    return [ground.forged([
        Section('.symtab', bomb_files.packed(table), SHT_SYMTAB, SHF_COMPRESSED,
                '.strtab', 24),
        Section('.strtab', strings, SHT_STRTAB)])]


@bomb()
def a_million_fdes_at_one_address(ground):
    """Without a search table, so that all are read and sorted."""
    at, size = address_of('bomb_work')
    one = bomb_files.eh_frame([(at, size, b'')])
    head = bomb_files.cie()
    out = bytearray(head)
    length = len(one) - len(head) - 4
    for _ in range(10**6):
        entry = bytearray(one[len(head):len(head) + length])
        entry[4:8] = (len(out) + 4).to_bytes(4, 'little')
        out += entry
    return [ground.forged(
        [Section('.eh_frame', bytes(out + bytes(4)))],
        program=bomb_files.without_phdrs(original(),
                                         {bomb_files.PT_GNU_EH_FRAME}))]


def with_eh_frame(ground, functions, how):
    return [ground.forged(
        [Section('.eh_frame', bomb_files.eh_frame(functions))], how,
        bomb_files.without_phdrs(original(), {bomb_files.PT_GNU_EH_FRAME}))]


@bomb()
def cfi_that_starts_again_for_each_row(ground):
    """Functions of 4,096 rows, for each of which 6,000 states are remembered and
    restored; the program computes in 64 groups of such functions in turn."""
    at, _ = address_of('bomb_hops')
    rows, step = 4096, 64 * KB // 16
    program = bytes([bomb_files.DW_CFA_same_value, 127]) + 6000 * bytes(
        [bomb_files.DW_CFA_remember_state, bomb_files.DW_CFA_restore_state]) + \
        bytes([bomb_files.DW_CFA_advance_loc | 1]) * rows
    return with_eh_frame(ground, [(at + step * i, step, program)
                                  for i in range(16 * 64)], 'hop')


@bomb(quick=True)
def cfi_that_remembers(ground):
    """States that are remembered a hundred thousand times."""
    at, size = address_of('bomb_work')
    remember = bytes([bomb_files.DW_CFA_remember_state]) * 100000
    return with_eh_frame(ground, [(at, size, remember)], 'work')


@bomb(quick=True)
def expressions_that_loop(ground):
    """DWARF expressions that jump to themselves, nest, or are long: of the CFA, and of
    the return address."""
    at, size = address_of('bomb_work')
    skip, dup, deref = b'\x2f\xfd\xff', b'\x12', b'\x06'
    branch = b'\x31\x28\xfc\xff'
    out = []
    for make in bomb_files.cfa_expression, bomb_files.return_address_expression:
        for operations in (skip, branch, b'\x70\x00' + dup * 60000,
                           b'\x77\x00' + deref * 60000):
            out += with_eh_frame(ground, [(at, size, make(operations))], 'work')
    return out


@bomb(quick=True)
def sections_that_claim_10_tb(ground):
    """Compressed sections whose headers claim 10 TB, by zlib, by zstd and in the old
    form of GNU."""
    claim = 10 << 40
    out = []
    for kind in bomb_files.ELFCOMPRESS_ZLIB, bomb_files.ELFCOMPRESS_ZSTD:
        content = bomb_files.compressed_header(claim, kind) + os.urandom(4096)
        out.append(ground.forged([
            Section('.eh_frame', content, flags=SHF_COMPRESSED),
            Section('.debug_info', content, flags=SHF_COMPRESSED),
            Section('.debug_line', b'ZLIB' + claim.to_bytes(8, 'big')),
            Section('.zdebug_abbrev', b'ZLIB' + claim.to_bytes(8, 'big') +
                    os.urandom(4096)),
            *symtab(content, flags=SHF_COMPRESSED)]))
    return out


@bomb()
def sections_that_unpack_to_the_limit(ground):
    """128 KB of zlib that unpack to 128 MB, for each section that is read."""
    zeros = bomb_files.packed(bytes(128 * MB))
    names = ['.debug_info', '.debug_abbrev', '.debug_line', '.debug_str',
             '.debug_ranges', '.debug_rnglists', '.debug_line_str', '.eh_frame',
             '.debug_frame', '.gopclntab', '.debug_addr', '.debug_str_offsets']
    return [ground.forged([
        *(Section(n, zeros, flags=SHF_COMPRESSED) for n in names),
        *symtab(zeros, flags=SHF_COMPRESSED)])]


@bomb(quick=True)
def xz_that_unpacks_to_100_gb(ground):
    """.gnu_debugdata of 15 MB; and one that asks for a dictionary of 4 GB."""
    whole = bomb_files.xz_of_zeros(64 * MB, 1600)
    return [ground.forged([Section('.gnu_debugdata', whole)]),
            ground.forged([Section('.gnu_debugdata',
                                   bomb_files.xz_with_dictionary(b'x', 40))])]


@bomb(quick=True)
def notes_of_4_gb(ground):
    """A segment of notes, in which build-ids are, that is a hole of 4 GB."""
    size = len(original()) // bomb_files.PAGE * bomb_files.PAGE + 2 * bomb_files.PAGE
    return [ground.forged(
        [Section('.hole', 4 * GB)],
        program=bomb_files.with_note(original(), size, 4 * GB - 1 * MB))]


@bomb(quick=True)
def headers_that_lie(ground):
    """65,535 program headers in a copy that is mapped, and a table of sections that
    is as long as a number can be."""
    path = ground.path('forged')
    bomb_files.write(path, original(), symtab(4096))
    with open(path, 'r+b') as file:
        # e_shnum is in the first section's size.
        file.seek(60)
        file.write(b'\0\0')
        file.seek(40)
        at = int.from_bytes(file.read(8), 'little')
        file.seek(at + 32)
        file.write(b'\xff' * 8)
    os.chown(path, ATTACKER, ATTACKER)
    return [ground.start_bomb(path, 'work')]


# Files that unwind asks for by name.

@bomb(quick=True)
def debug_link_to_a_fifo(ground):
    """.gnu_debuglink to a FIFO, to a device, and to files of root's."""
    directory = ground.path('linked')
    directory.mkdir()
    secret = ground.dir / 'secret'
    secret.write_bytes(original())
    secret.chmod(0o600)
    os.mkfifo(directory / 'fifo')
    (directory / 'zero').symlink_to('/dev/zero')
    (directory / 'secret').symlink_to(secret)
    (directory / 'mem').symlink_to('/proc/self/mem')
    os.mknod(directory / 'device', 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    out = []
    for name in 'fifo', 'zero', 'secret', 'mem', 'device':
        path = directory / f'of-{name}'
        link = name.encode().ljust(len(name) // 4 * 4 + 4, b'\0') + bytes(4)
        bomb_files.write(path, original(), [Section('.gnu_debuglink', link)])
        out.append(ground.start_bomb(path, 'work'))
    return out


@bomb()
def debug_link_to_1_gb(ground):
    """A hole as large as a linked file may be, of which the checksum is made."""
    directory = ground.path('linked')
    directory.mkdir()
    with open(directory / 'large', 'wb') as file:
        file.truncate(GB)
    path = directory / 'program'
    bomb_files.write(path, original(), [
        Section('.gnu_debuglink', b'large\0\0\0' + bytes(4))])
    return [ground.start_bomb(path, 'work')]


@bomb(quick=True)
def perf_map_of_4_tb(ground):
    """A hole, and lines behind it; of 5 GB if the file system has no larger files."""
    program, text = ground.jit()
    path = ground.perf_map(program)
    with open(path, 'w', encoding='ascii') as file:
        file.write(text)
        file.flush()
        try:
            os.truncate(path, 4 * TB)
        except OSError:
            os.truncate(path, 5 * GB)
        file.seek(0, os.SEEK_END)
        file.write(text)
    os.chown(path, ATTACKER, ATTACKER)
    return [program]


@bomb()
def perf_map_up_to_the_limit(ground):
    """A million entries, from the last to the first, that are written again and
    again."""
    program, text = ground.jit()
    path = ground.perf_map(program)
    path.write_text(text + ''.join(f'{n * 16:x} 10 f\n' for n in
                                   range(1 << 20, 0, -1)))
    os.chown(path, ATTACKER, ATTACKER)
    script = ('import os, sys, time\n'
              'while os.path.exists(sys.argv[1]):\n'
              '    size = os.path.getsize(sys.argv[1])\n'
              '    with open(sys.argv[1], "a") as f:\n'
              '        f.write("10 10 g\\n")\n'
              '    time.sleep(0.01)\n')
    ground.box.start([sys.executable, '-c', script, path],
                     **stranger.options(ATTACKER))
    return [program]


@bomb(quick=True)
def perf_maps_that_are_none(ground):
    """A FIFO, devices, and symbolic links to a file of root's that has valid lines:
    their name is in no profile."""
    out = []
    for kind in 'fifo', 'device', 'zero', 'secret', 'hard':
        program, text = ground.jit()
        path = ground.perf_map(program)
        secret = pathlib.Path(f'/tmp/perf-{program.pid}.secret')
        ground.exit.callback(secret.unlink, missing_ok=True)
        secret.write_text(re.sub(r'JS:\S+', 'SECRET_OF_ROOT', text))
        secret.chmod(0o600)
        if kind == 'fifo':
            os.mkfifo(path)
            os.chown(path, ATTACKER, ATTACKER)
        elif kind == 'device':
            os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))
            os.chown(path, ATTACKER, ATTACKER)
        elif kind == 'hard':
            os.link(secret, path)
        else:
            path.symlink_to('/dev/zero' if kind == 'zero' else secret)
        out.append(program)
    return out


@bomb()
def file_truncated_while_it_is_read(ground):
    """A library that another process cuts and writes again, hundreds of times a
    second."""
    whole = (BUILD / 'targets/link').read_bytes()
    library = ground.path('library.so')
    bomb_files.write(library, whole, symtab(
        bomb_files.symbols([(1, 0x1000 + i % 4096, 1) for i in range(50000)])))
    os.chown(library, ATTACKER, ATTACKER)
    target = ground.start_bomb(ground.copy('chain', 'chain'), library)
    # Pages that are mapped stay.
    ground.bombs('truncate', library, len(whole))

    def again():
        ground.profctl('detach', target)
        wait_for(lambda: ground.profctl('attach', target), 'attached again')
    ground.meanwhile.append(again)
    return [target]


# Processes.

@bomb()
def maps_65530(ground):
    """As many mappings as a process may have, of a file with a short path, and of one
    with a path of 3,500 bytes."""
    long = ground.own
    while len(str(long)) < 3500:
        long /= 'd' * 250
    long.mkdir(parents=True, exist_ok=True)
    most = int(pathlib.Path('/proc/sys/vm/max_map_count').read_text())
    out = []
    for path in ground.own / 'file', long / 'file':
        path.write_bytes(original()[:4096])
        out.append(ground.bombs('maps', most, path))
    return out


@bomb(missed_max=0.75)
def threads_as_many_as_may_be(ground):
    """40,000, or as many as the machine allows beside other programs. Attaching to them
    takes seconds, in which ticks are late."""
    most = int(pathlib.Path('/proc/sys/kernel/pid_max').read_text())
    n = min(40000, most - SPARE_PIDS)
    target = ground.start_bomb(
        ground.copy('life_many', 'life_many'), n, 0, stdin=subprocess.PIPE)
    ground.notes.append(f'{n} threads')
    return [target]


@bomb(quick=True)
def stack_of_1_gb(ground):
    """Of a few large frames, and of more frames than a stack may have."""
    return [ground.bombs('stack', 1024, frame) for frame in (MB, 4096)]


@bomb()
def stack_of_millions_of_frames(ground):
    """1 GB of small frames."""
    return [ground.bombs('stack', 1024, ground.rng.choice((16, 64, 256)))]


@bomb(quick=True)
def names(ground):
    """Of programs, threads, processes, functions and files, with escapes and
    without meaning."""
    own = ground.path('names')
    own.mkdir()
    for name in EVIL_NAMES:
        if b'/' not in name and name.strip():
            shutil.copy(BUILD / 'targets/bombs', os.fsencode(own) + b'/' + name)
    out = [ground.start_bomb(os.fsencode(own) + b'/' + name, b'names', *EVIL_NAMES)
           for name in ground.rng.sample(EVIL_NAMES[:9], 3)]
    at, size = address_of('bomb_work')
    for name in ground.rng.sample(EVIL_NAMES[:9], 2):
        out.append(ground.forged(symtab(bomb_files.symbols([(1, at, size)]),
                                        b'\0' + name + b'\0')))
    program, text = ground.jit()
    path = ground.perf_map(program)
    path.write_bytes(re.sub(rb'JS:\S+', lambda _: ground.rng.choice(
        EVIL_NAMES[2:9]), text.encode()))
    os.chown(path, ATTACKER, ATTACKER)
    return [*out, program]


@bomb(quick=True)
def command_line_of_2_mb(ground):
    """And an environment of 2 MB, with the release at its end."""
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (64 * MB, hard))
    try:
        arguments = ['no' * 60000] * 16
        env = {f'V{n}': 'v' * 120000 for n in range(16)}
        env['SENTRY_RELEASE'] = '\x1b[31mred\n@' + 'x' * 1000
        return [ground.bombs('work', *arguments, env=env)]
    finally:
        resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))


MEMFD = '''import os, sys
fd = os.memfd_create(sys.argv[2], 0)
with open(sys.argv[1], 'rb') as file:
    os.write(fd, file.read())
os.truncate(fd, int(sys.argv[3]))
os.execve(fd, ['memfd', 'work'], os.environ)
'''


@bomb(quick=True)
def programs_in_memfds(ground):
    """With a name of escapes, and of 4 GB."""
    exe = ground.copy('bombs', 'bombs')
    return [ground.start_bomb(sys.executable, '-c', MEMFD, exe, name, size)
            for name, size in (('\x1b[2J %s\n', 16 * MB), ('large', 4 * GB))]


@bomb()
def execs(ground):
    """A process that executes itself every millisecond, twice."""
    return [ground.bombs('execs') for _ in range(2)]


@bomb(has_chunk=False)
def forks(ground):
    """Chains of processes, which a section matches, and births by the hundred."""
    maker = Makers(ground, 'rabbits-churn', ATTACKER)
    for _ in range(4):
        ground.start_bomb(ground.copy('bombs', 'rabbits'), 'forks')

    def turn():
        maker.tell('turn', 200, ground.rng.choice(('plain', 'comm', 'title')))
    ground.meanwhile.append(turn)
    return []


@bomb()
def namespaces(ground):
    """User, pid, mount, network and other namespaces, without /proc, in which files
    have the names of files of the host."""
    place = test_namespaces.Place(ground.box, as_user=True)
    (place.image / 'tmp').mkdir()
    os.mkfifo(place.image / 'tmp/perf-1.map')
    (place.image / 'usr/lib').mkdir(parents=True, exist_ok=True)
    (place.image / 'usr/lib/debug').symlink_to('../../../../../../../../etc')
    first, _ = place.start(test_namespaces.TMPFS, test_namespaces.CHROOT)
    second = ground.start_bomb(
        'unshare', '-Urpmnui', '--fork', '--kill-child', '--mount-proc',
        ground.copy('bombs', 'bombs'), 'work')
    inner, = wait_for(lambda: harness.children(second.pid), 'the process in it')
    second.pid = inner
    return [first, second]


def hang(ground, how):
    """Starts tests/targets/hang.c, which root has to run, at its worst."""
    target = test_hung.hang_target(ground.box, how)
    ground.after_attach.append(functools.partial(test_hung.go_deep, target))
    return [target]


@bomb(uid=0)
def stack_of_userfaultfd(ground):
    """Pages of a stack that nobody ever fills."""
    return hang(ground, 'uffd')


@bomb(uid=0)
def stack_of_fuse(ground):
    """Pages of a stack whose FUSE server answers no request."""
    test_hung.need_fuse()
    return hang(ground, 'fuse')


@bomb(uid=0)
def stack_of_fuse_that_takes_requests(ground):
    """And never answers, so that who waits cannot even be killed."""
    test_hung.need_fuse()
    return hang(ground, 'jam')


@bomb(uid=0)
def code_of_fuse(ground):
    """A file that cannot be opened: the helper that opens files hangs."""
    test_hung.need_fuse()
    return hang(ground, 'code')


@bomb(uid=0, has_chunk=False, hangs=True)
def stack_of_userfaultfd_in_a_race(ground):
    """Pages that come and go, until capture waits for one and is replaced."""
    target = test_hung.hang_target(ground.box, 'race')

    def race():
        test_hung.go_deep(target)
        try:
            test_hung.win_race(ground.profd, target)
        except Skip:
            ground.notes.append('capture has met no such page')
    ground.after_attach.append(race)
    return [target]


# The storm.

class Explosion:
    """Some bombs at once."""

    def __init__(self, ground, functions):
        self.ground, self.functions = ground, functions
        self.name = functions[0].__name__ if len(functions) == 1 else \
            f'{len(functions)} at once'
        self.uids = {f.uid for f in functions}
        self.hangs = any(f.hangs for f in functions)
        self.missed_max = max(f.missed_max for f in functions)
        self.first = len(ground.box.programs)
        self.restarts = restarts(ground.control)
        # Processes to attach, those whose profiles have to come, and what
        # bombs do once they are attached, and meanwhile.
        self.programs, self.awaited = [], []
        self.incomplete, self.silent = [], []
        ground.after_attach, ground.meanwhile, ground.notes = [], [], []

    def run(self):
        """Returns a line of figures."""
        with self.ground.exit:
            try:
                return self.run_until_complete()
            finally:
                for program in self.ground.box.programs[self.first:]:
                    program.end()
                del self.ground.box.programs[self.first:]

    def run_until_complete(self):
        ground = self.ground
        for function in self.functions:
            programs = function(ground)
            self.programs += programs
            if function.has_chunk:
                self.awaited += programs
        status = ground.status()
        self.meter = Meter(ground.profd)
        self.meter.start()
        for b in ground.bystanders:
            b.begin(status)
        self.began = time.monotonic()
        try:
            self.attach()
            for do in ground.after_attach:
                do()
            self.watch()
        finally:
            self.figures = self.meter.figures(MEMORY_MAX_MB)
            line = self.line()
            print(f'  {line}', flush=True)
        self.check_bounds()
        return line

    def attach(self):
        for program in self.programs:
            check(self.ground.profctl('attach', program),
                  f'{program.pid} is not attached')

    def watch(self):
        """Waits until the bystanders are complete, with the bombs at work."""
        try:
            wait_for(self.look, 'complete bystanders and a profile of the bomb',
                     WAIT_S)
        except Failure as e:
            raise Failure(f'{e}; not complete: users {self.incomplete}, no '
                          f'profile: {self.silent}') from None

    def look(self):
        ground = self.ground
        for do in ground.meanwhile:
            do()
        ground.check_health()
        status = ground.status()
        ground.read_arrivals()
        for b in ground.bystanders:
            b.look(status)
        self.incomplete = [b.uid for b in ground.bystanders if not
                           (b.is_complete and b.is_named())]
        here = {pid for i, pid in ground.profilers.items()
                if i in ground.arrived}
        self.silent = [status.get(p.pid, p.pid) for p in self.awaited
                       if p.pid not in here]
        cpu = self.meter.cpu_s('unwind')
        check(cpu < CPU_MAX_S, f'unwind has used {cpu:.0f} s')
        time.sleep(LOOK_S)
        return time.monotonic() > self.began + HOLD_S and \
            not self.incomplete and not self.silent

    def check_bounds(self):
        ground = self.ground
        for kind, (_, mb) in self.figures.items():
            check(mb <= MEMORY_MAX_MB[kind] + SANITIZED_MB,
                  f'{kind} has grown by {mb} MB')
        for b in ground.bystanders:
            check(b.uid in self.uids or b.missed() <= self.missed_max,
                  f'the bystander of user {b.uid} has missed '
                  f'{b.missed():.0%} of its samples')
        for what, n in restarts(ground.control).items():
            check(n == self.restarts[what] or
                  (self.hangs and what[0] == 'capture'),
                  f'{what} was started again {n - self.restarts[what]} times')

    def line(self):
        took = time.monotonic() - self.began
        bystanders = self.ground.bystanders
        out = [f'{self.name:34} {took:5.1f} s']
        for of in ([b for b in bystanders if b.uid not in self.uids],
                   [b for b in bystanders if b.uid in self.uids]):
            out.append(f'{max((b.incomplete_s for b in of), default=0):4.1f} s '
                       f'{max((b.missed() for b in of), default=0):4.0%}')
        out += [f'{cpu:5.2f} s {mb:4d}' for cpu, mb in self.figures.values()]
        return ' | '.join(out + self.ground.notes)


HEAD = (f'{"":34}    took | others       | same uid     | broker s  MB | files '
        's   MB | capture s MB | unwind s  MB | ship s    MB')


def end(ground):
    ground.profd.signal(signal.SIGTERM)
    ground.profd.finish()
    ground.check_log()
    stats = ground.profd.stats
    check_sums(stats)
    # These unwind processes are late, but honest.
    check('chunk_budget' not in stats['chunks']['discarded'],
          f'{stats["chunks"]["discarded"]}')


def run(box, seconds, rng):
    stranger.need_root()
    is_short = seconds <= SHORT_S
    chosen = [f for name, f in BOMBS.items() if (f.quick or not is_short) and
              re.search(os.environ.get('BOMB', ''), name)]
    check(chosen, 'no bomb has this name')
    ground = Ground(box, rng)
    until = time.monotonic() + seconds
    figures, failed = {'bomb': HEAD}, []

    def set_off(functions):
        try:
            line = Explosion(ground, functions).run()
        except Skip as e:
            line = f'{functions[0].__name__}: skipped: {e}'
        except (Failure, OSError) as e:
            names = ', '.join(f.__name__ for f in functions)
            line = f'{names}: {e}'
            failed.append(line)
            print(f'  {line}', flush=True)
            check(ground.profd.running(), line)
        figures[f'{len(figures)}'] = line

    def set_off_some():
        some = rng.sample(chosen, min(SHORT_N, len(chosen)))
        print(f'  {", ".join(f.__name__ for f in some)}:', flush=True)
        set_off(some)

    if is_short:
        set_off_some()
    else:
        for function in rng.sample(chosen, len(chosen)):
            set_off([function])
        while time.monotonic() < until:
            set_off_some()
    check(not failed, '\n'.join(failed))
    end(ground)
    return figures
