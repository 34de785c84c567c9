#!/usr/bin/python3
"""Build-ids of all lengths and debug links of all forms, in libraries that a
target has made itself. They cost no stack, neither of that target nor of
another process of the same user."""

import pathlib
import re
import shutil
import struct
import subprocess

import harness
from harness import BUILD, Skip, check, wait_for
from test_broker import check_sums

# Lengths of build-ids in bytes. The file has room for 92; at most 64 are read.
LENGTHS = (0, 1, 2, 3, 4, 19, 20, 63, 64, 65, 92)

# Contents of .gnu_debuglink: a name, its NUL, padding, and a checksum.
LINKS = [name + b'\0' + bytes(-(len(name) + 1) % 4) + b'CRC!' for name in (
    b'x', b'plain.debug', b'', b'.', b'..', b'.hidden', b'a b', b'a\nb',
    b'\x1b[31m', b'a/b', b'/etc/passwd', b'\xc3\xa4', b'\x7f', b'%s%n',
    b'x' * 254, b'x' * 255, b'x' * 256, b'x' * 5000)]
# The same without a NUL, or without further bytes after it.
LINKS += [b'x', b'x' * 256, b'x\0', b'x\0\0\0CRC']


def with_build_id(data, length):
    """Returns the library with a build-id of that length. The remaining bytes
    read as empty notes."""
    at = data.index(b'GNU\0' + b'\1' * 92)
    check(struct.unpack_from('<III', data, at - 12) == (4, 92, 3), 'the note')
    build_id = bytes(range(1, 93))[:length].ljust(92, b'\0')
    return data[:at - 8] + struct.pack('<II', length, 3) + b'GNU\0' + \
        build_id + data[at + 96:]


def libraries(box):
    for tool in ('objcopy', 'strip'):
        if not shutil.which(tool):
            raise Skip(f'no {tool} (Debian: binutils)')
    directory = box.make_dir('libraries')
    stripped = directory / 'stripped'
    subprocess.run(['strip', '-o', stripped, BUILD / 'targets/link'],
                   check=True)
    for length in LENGTHS:
        path = directory / f'id-{length}.so'
        path.write_bytes(with_build_id(stripped.read_bytes(), length))
        yield path
    for i, link in enumerate(LINKS):
        path = directory / f'link-{i}.so'
        content = directory / 'content'
        content.write_bytes(link)
        subprocess.run(['objcopy', f'--add-section=.gnu_debuglink={content}',
                        stripped, path], check=True)
        # Without a build-id the link is used.
        path.write_bytes(with_build_id(path.read_bytes(), 0))
        yield path


def functions(chunk):
    """Returns the functions of each stack, innermost first."""
    profile = chunk['profile']
    return [[profile['frames'][f].get('function') for f in stack]
            for stack in profile['stacks']]


def test_every_build_id_and_link(box):
    paths = list(libraries(box))
    chain = box.target('chain', *paths)
    wait_for(lambda: harness.blocked(chain.pid), 'it waits')
    bystander = box.target('shares')
    profd = box.profd([chain, bystander], '--chunk-seconds', '1')
    profd.wait_attached().wait_chunks(4)
    profd.interrupt()
    check_sums(profd)
    check(not re.search('unwind.* is replaced|starting it again',
                        profd.stderr), profd.stderr)
    check(profd.stats['files_refused'] == 0, f'{profd.stats}')
    for target in profd.stats['targets']:
        stacks = target['unwind']
        check(stacks['complete'] > 0 and stacks['truncated'] == 0 and
              stacks['failed'] == {}, f'{stacks}')
    deepest = max((s for c in profd.chunks for s in functions(c)), key=len)
    check(deepest.count('pass') == len(paths) and 'main' in deepest,
          f'{len(paths)} libraries, {deepest}')
    code_ids = {pathlib.Path(i['code_file']).name: i.get('code_id')
                for c in profd.chunks for i in c['debug_meta']['images']}
    for length in LENGTHS:
        ought = bytes(range(1, 93))[:min(length, 64)].hex() or None
        check(code_ids[f'id-{length}.so'] == ought, f'{length}: {code_ids}')
    check(any('busy_seventy' in s for c in profd.chunks
              for s in functions(c)), 'the bystander has no stacks')


if __name__ == '__main__':
    harness.main(globals())
