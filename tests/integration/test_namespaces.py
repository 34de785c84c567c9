#!/usr/bin/python3
"""Programs in a mount namespace of their own, as in containers: their mapped
files are read, and not the files with the same paths on the host."""

import os
import shutil
import subprocess

import harness
import stranger
from elf import Elf
from harness import BUILD, Skip, check

harness.filters_kill()

STRICT = harness.environment(SENTRY_PROFD_SECCOMP_KILL='1')

# A file of the lower layer has another device in stat(2) than in maps.
OVERLAY = '''mount -t tmpfs tmpfs "$1/own" && mkdir "$1/own/up" "$1/own/work" &&
mount -t overlay -o "xino=off,$2lowerdir=$1/image,upperdir=$1/own/up" \
      -o "workdir=$1/own/work" overlay "$1/root"'''
TMPFS = 'mount -t tmpfs tmpfs "$1/root" && cp -r "$1/image/." "$1/root"'
PIVOT = 'cd "$1/root" && pivot_root . old && exec /program nanosleep'
CHROOT = 'exec chroot "$1/root" /program nanosleep'


def needed(path):
    """Returns the files that the dynamic linker loads for a program."""
    text = subprocess.run(['ldd', path], check=True, capture_output=True,
                          text=True).stdout
    return [word for word in text.split() if word.startswith('/')]


class Place:
    """A directory with a program and its libraries (image), one where they are
    to be (root), in which the host has other files, and one for overlayfs."""

    def __init__(self, box, as_user=False):
        self.box = box
        self.as_user = as_user
        self.options = stranger.options() if as_user else {}
        self.dir = stranger.make_dir(box, 'place')
        self.image = self.dir / 'image'
        for name in ('image/old', 'root', 'own'):
            (self.dir / name).mkdir(parents=True)
        self.program = self.image / 'program'
        shutil.copy(BUILD / 'targets/unw_o2', self.program)
        for path in needed(self.program):
            copy = self.image / path[1:]
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        # A file with the same name as the program that is run.
        shutil.copy(BUILD / 'targets/unw_o0', self.dir / 'root/program')
        for path in (self.dir, *self.dir.rglob('*')):
            os.chown(path, self.dir.stat().st_uid, -1)

    def unshare(self, script):
        more = ['-Ur'] if self.as_user else []
        return ['unshare', '--mount', *more, 'sh', '-c', script, 'sh',
                self.dir, 'userxattr,' if self.as_user else '']

    def need(self, mount):
        """Skips the test if that cannot be mounted."""
        done = subprocess.run(self.unshare(mount), check=False,
                              capture_output=True, text=True, **self.options)
        if done.returncode != 0:
            raise Skip(f'refused here: {done.stderr.strip()}')

    def start(self, mount, run):
        self.need(mount)
        target = self.box.start(self.unshare(f'{mount} && {run}'),
                                **self.options)
        expected = target.wait_line('expect (.*)')[1].split()
        harness.wait_for(lambda: harness.blocked(target.pid), 'it waits')
        return target, expected

    def profile(self, target):
        if self.as_user:
            profd = stranger.profd(self.box, [target], env=STRICT)
        else:
            profd = self.box.profd([target], env=STRICT)
        profd.wait_attached()
        chunk, = profd.wait_looks(10).interrupt().chunks
        return chunk

    def check(self, chunk, expected, where):
        """Checks that all frames have names, and that each image is the
        program's own file."""
        frames = chunk['profile']['frames']
        stack = max(chunk['profile']['stacks'], key=len)
        names = [frames[f].get('function', '') for f in stack]
        check([n for n in names if n in expected] == expected,
              f'{names}, not {expected}')
        check(names[-1] == '_start', f'{names} end early')
        images = {i['code_file']: i['debug_id']
                  for i in chunk['debug_meta']['images']
                  if i['code_file'] != '[vdso]'}
        # If the test itself runs in another root, that root precedes the
        # paths.
        before = [path[:-len(where + '/program')] for path in images
                  if path.endswith(where + '/program')]
        check(len(before) == 1, f'{images}')
        own = {f'{before[0]}{where}/{p.relative_to(self.image)}': p
               for p in self.image.rglob('*') if p.is_file()}
        for path, debug_id in images.items():
            check(debug_id == Elf(own[path].read_bytes()).debug_id,
                  f'{path} is not its own')


def check_run(box, mount, run, where, as_user=False):
    place = Place(box, as_user)
    target, expected = place.start(mount, run)
    place.check(place.profile(target), expected,
                where.replace('$1', str(place.dir)))
    target.end()


def test_tmpfs(box):
    check_run(box, TMPFS, CHROOT, '$1/root')


def test_overlay(box):
    check_run(box, OVERLAY, PIVOT, '')


def test_of_a_user(box):
    """A user who may not open map_files finds the file by its path."""
    stranger.need_ptrace()
    check_run(box, TMPFS, CHROOT, '$1/root', as_user=True)
    check_run(box, OVERLAY, PIVOT, '', as_user=True)


def test_replaced(box):
    """A newer file has the program's name, as after an upgrade."""
    place = Place(box)
    shutil.copy(place.dir / 'root/program', place.image / 'newer')
    target, expected = place.start(TMPFS, CHROOT)
    root = f'/proc/{target.pid}/root'
    os.rename(f'{root}/newer', f'{root}/program')
    chunk = place.profile(target)
    place.check(chunk, expected, f'{place.dir}/root')
    build_id = Elf(place.program.read_bytes()).build_id.hex()
    check(chunk['release'] == f'program@{build_id[:12]}', chunk['release'])
    check(all(f['in_app'] for f in chunk['profile']['frames']
              if f.get('function') in expected), 'its code is not its own')


if __name__ == '__main__':
    harness.main(globals())
