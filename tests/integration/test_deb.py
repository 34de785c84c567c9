#!/usr/bin/python3
"""The list of dependencies of the package for arm64 (make deb-arm64) is what dpkg-shlibdeps finds
for the executables of this machine."""

import os
import pathlib
import re
import shutil
import subprocess

import harness
from harness import BUILD, ROOT, Skip, check

LIST = ROOT / 'systemd/deb/depends-arm64'
# Libraries of glibc and libunwind that have the name of the architecture.
OURS = {'ld-linux-x86-64.so.2': 'ld-linux-aarch64.so.1',
        'libunwind-x86_64.so.8': 'libunwind-aarch64.so.8'}


def run(*argv, **more):
    return subprocess.run([str(a) for a in argv], check=True, capture_output=True, text=True,
                          env=harness.environment(LC_ALL='C'), **more).stdout


def pair(text):
    """'libdw1 (>= 0.158)' or 'libunwind8'."""
    found = re.fullmatch(r'(\S+)(?: \(>= (\S+)\))?', text)
    return found[1], found[2] or '0'


def needed(path):
    names = re.findall(r'\(NEEDED\).*\[(.*)\]', run('readelf', '-d', path))
    return {OURS.get(n, n) for n in names}


def is_later(a, b):
    return subprocess.run(['dpkg', '--compare-versions', a, 'gt', b], check=False).returncode == 0


def test_the_list_for_arm64(box):
    if os.uname().machine != 'x86_64' or shutil.which('dpkg-shlibdeps') is None:
        raise Skip('for x86_64, and with dpkg-shlibdeps')
    if 'VERSION_CODENAME=bookworm' not in pathlib.Path('/etc/os-release').read_text():
        raise Skip('the list is for Debian 12')
    work = box.make_dir('work')
    (work / 'debian').mkdir()
    (work / 'debian/control').write_text('Source: x\n\nPackage: x\nArchitecture: any\n')
    lines = [line.split(' ', 1) for line in LIST.read_text().splitlines() if line[0] != '#']
    packages = {library: pair(text) for library, text in lines}
    seen, latest = set(), {}
    files = [p for p in sorted(BUILD.iterdir()) if re.fullmatch(
        r'sentry-prof[a-z-]+|libsentry_profd\.so', p.name) and os.access(p, os.X_OK)]
    check(len(files) == 8, f'{files}')
    for path in files:
        libraries = needed(path)
        check(libraries <= packages.keys(), f'{path}: {libraries - packages.keys()}')
        seen |= libraries
        wanted = dict(pair(p) for p in run('dpkg-shlibdeps', '-O', path, cwd=work)
                      .strip().removeprefix('shlibs:Depends=').split(', '))
        check(wanted.keys() == {packages[n][0] for n in libraries}, f'{path}: {wanted}')
        for package, version in wanted.items():
            if is_later(version, latest.get(package, '0')):
                latest[package] = version
    check(seen == packages.keys(), f'not needed: {packages.keys() - seen}')
    for package, version in packages.values():
        check(version == latest.get(package, '0'), f'{package}: {version}, not {latest}')


if __name__ == '__main__':
    harness.main(globals())
