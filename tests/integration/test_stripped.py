#!/usr/bin/python3
"""Names of stripped programs: from debug files of every kind, and none from
files that do not belong to the program."""

import lzma
import os
import shutil
import subprocess

import chunk_rules
import harness
from harness import BUILD, Skip, check
from layout import Layout
from test_profctl import parse, run as profctl

SOURCE = BUILD / 'targets/unw_static'

# A sandboxed process that makes a forbidden call is killed.
STRICT = harness.environment(SENTRY_PROFD_SECCOMP_KILL='1')


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise Skip(f'no {tool} (Debian: binutils)')


def run(*argv):
    subprocess.run([str(a) for a in argv], check=True)


def build_id(path):
    text = subprocess.run(['readelf', '-n', path], check=True,
                          capture_output=True, text=True).stdout
    return text.partition('Build ID: ')[2].split()[0]


class Stripped:
    """A copy of the program without symbols, and the symbols that were
    removed."""

    def __init__(self, box, name, keep_id=True):
        need('strip', 'objcopy', 'readelf')
        self.box = box
        self.dir = box.make_dir(name)
        self.debug = self.dir / 'program.debug'
        whole = self.dir / 'whole'
        run('objcopy', *([] if keep_id else
                         ['--remove-section=.note.gnu.build-id']),
            SOURCE, whole)
        self.path = self.dir / 'program'
        run('strip', '-o', self.path, whole)
        run('objcopy', '--only-keep-debug', whole, self.debug)

    def profile(self, argv=None, **options):
        """Returns (expected names, found names), innermost first."""
        target = self.box.start(argv or [self.path, 'nanosleep'], **options)
        expected = target.wait_line('expect (.*)')[1].split()
        found = self.names(target)
        target.end()
        return expected, found

    def names(self, target):
        """Returns the names that are found on its stack, innermost first."""
        harness.wait_for(lambda: harness.blocked(target.pid), 'it waits')
        profd = self.box.profile([target], env=STRICT)
        chunk, = profd.chunks
        stack = max(chunk['profile']['stacks'], key=len)
        names = [chunk['profile']['frames'][f].get('function') for f in stack]
        return [n for n in names if n and '+0x' not in n]

    def check_named(self, argv=None, **options):
        expected, found = self.profile(argv, **options)
        check([n for n in found if n in expected] == expected,
              f'{found}, not {expected}')

    def check_nameless(self):
        expected, found = self.profile()
        check(found == [], f'names out of nowhere: {found}')


def test_debugdata(box):
    program = Stripped(box, 'debugdata')
    program.check_nameless()
    run('strip', '--strip-debug', program.debug)
    packed = program.dir / 'packed'
    packed.write_bytes(lzma.compress(program.debug.read_bytes()))
    run('objcopy', f'--add-section=.gnu_debugdata={packed}', program.path)
    program.check_named()


def test_debugdata_that_is_none(box):
    program = Stripped(box, 'broken')
    packed = program.dir / 'packed'
    whole = lzma.compress(program.debug.read_bytes())
    packed.write_bytes(whole[:len(whole) // 2])
    run('objcopy', f'--add-section=.gnu_debugdata={packed}', program.path)
    program.check_nameless()


def test_link(box):
    """The debug file is next to the program, or in .debug there; only with the
    right checksum."""
    program = Stripped(box, 'link', keep_id=False)
    run('objcopy', f'--add-gnu-debuglink={program.debug}', program.path)
    program.check_named()
    beside = program.dir / '.debug'
    beside.mkdir()
    moved = program.debug.rename(beside / 'program.debug')
    program.check_named()
    data = bytearray(moved.read_bytes())
    data[-1] ^= 1
    moved.write_bytes(data)
    program.check_nameless()


def test_files_that_are_gone(box):
    """The program was deleted, its debug file replaced by another. The
    existing file is used, if it is the right one."""
    program = Stripped(box, 'gone', keep_id=False)
    run('objcopy', f'--add-gnu-debuglink={program.debug}', program.path)
    target = box.start([program.path, 'nanosleep'])
    expected = target.wait_line('expect (.*)')[1].split()
    program.path.unlink()
    check([n for n in program.names(target) if n in expected] == expected,
          'the program was deleted')
    right = program.debug.read_bytes()
    program.debug.unlink()
    program.debug.write_bytes(right[:-1] + b'x')
    check(program.names(target) == [], 'another file has its name')
    program.debug.unlink()
    check(program.names(target) == [], 'the debug file was deleted')
    program.debug.write_bytes(right)
    check([n for n in program.names(target) if n in expected] == expected,
          'it is back')


def test_link_is_a_name(box):
    """A debug link with a path is not followed."""
    program = Stripped(box, 'path', keep_id=False)
    elsewhere = program.dir / 'sub'
    elsewhere.mkdir()
    run('objcopy', f'--add-gnu-debuglink={program.debug}', program.path)
    data = program.path.read_bytes()
    moved = program.debug.rename(elsewhere / 'm.debug')
    check(data.count(b'program.debug\0') == 1, 'the link is not where it is')
    program.path.write_bytes(data.replace(b'program.debug\0',
                                          b'sub/././m.dbg\0'))
    moved.rename(elsewhere / 'm.dbg')
    program.check_nameless()


def in_root(box, program):
    """Makes a root directory with the program, and its debug file by build-id.
    """
    if os.geteuid() != 0:
        raise Skip('needs root: chroot')
    root = box.make_dir('root')
    shutil.copy(program.path, root / 'program')
    code = build_id(program.path)
    place = root / 'usr/lib/debug/.build-id' / code[:2]
    place.mkdir(parents=True)
    return root, place / f'{code[2:]}.debug'


def test_build_id_in_the_targets_root(box):
    program = Stripped(box, 'container')
    root, place = in_root(box, program)
    argv = ['chroot', root, '/program', 'nanosleep']
    shutil.copy(program.debug, place)
    program.check_named(argv)
    # By a symbolic link, as packages have it. It is resolved within the root.
    place.unlink()
    shutil.copy(program.debug, root / 'elsewhere')
    place.symlink_to('/elsewhere')
    program.check_named(argv)


def test_link_in_the_targets_root(box):
    """The debug file is next to the program in the target's root, where other
    processes see another path."""
    program = Stripped(box, 'jail', keep_id=False)
    run('objcopy', f'--add-gnu-debuglink={program.debug}', program.path)
    if os.geteuid() != 0:
        raise Skip('needs root: chroot')
    root = box.make_dir('root')
    (root / 'bin').mkdir()
    shutil.copy(program.path, root / 'bin/program')
    shutil.copy(program.debug, root / 'bin')
    program.check_named(['chroot', root, '/bin/program', 'nanosleep'])


def test_build_id_of_another(box):
    """A wrong file at the place of the debug file is not used."""
    program = Stripped(box, 'other')
    root, place = in_root(box, program)
    own = bytes.fromhex(build_id(program.path))
    data = program.debug.read_bytes()
    check(data.count(own) == 1, 'the build-id is not where it is')
    place.write_bytes(data.replace(own, own[::-1]))
    expected, found = program.profile(['chroot', root, '/program',
                                       'nanosleep'])
    check(found == [], f'names of another program: {found}')


def test_go(box):
    """Debian's Go programs have no symbols and no call frame information.
    Names and callers come from Go's own table, also where the frame pointer
    does not lead to the caller (futexsleep, from the call in which its thread
    waits)."""
    need('gron')
    target = box.start(['gron'], stdin=subprocess.PIPE)
    way = ['runtime.futex', 'runtime.futexsleep', 'runtime.notesleep']

    def found():
        done = profctl('stack', '--oracle=dwfl', target.pid, status=(0, 3))
        threads = parse(done.stdout).values()
        return any([f.name for f in t.frames[:3]] == way and
                   not any(f.guessed for f in t.frames[:3])
                   for t in threads if t.end == 'root')

    harness.wait_for(found, f'a thread waits in {way}')


def test_mapped_twice(box):
    """One file is mapped at two addresses: both have names, each with its own
    image."""
    target = box.target('twice')
    layout = Layout(target.pid)
    profd = box.profile([target], env=STRICT)
    envelope, = profd.envelopes
    found = chunk_rules.problems(envelope, layout)
    check(found == [], f'{found[:5]}')
    profile = envelope.chunk['profile']
    through = {f['instruction_addr'] for s in profile['stacks']
               for f in (profile['frames'][i] for i in s)
               if f.get('function') == 'qsort_r'}
    libc = [i for i in envelope.chunk['debug_meta']['images']
            if '/libc.so.6' in i['code_file']]
    check(len(through) == 2, f'{profile["frames"]}')
    check(len(libc) == 2 and len({i['image_addr'] for i in libc}) == 2 and
          len({i['debug_id'] for i in libc}) == 1, f'{libc}')


if __name__ == '__main__':
    harness.main(globals())
