#!/usr/bin/python3
"""The program on the first page of each library's header can be compiled, and does what it says."""

import json
import platform
import re
import signal
import subprocess

import harness
from harness import BUILD, ROOT, Skip, check

# The archives and libraries of each program, in the order of the linker.
UNWIND = ('unwind.a', 'base.a', '-ldw', '-lelf', '-llzma', '-lzstd', '-lz', '-liberty')
CAPTURE = ('capture.a', 'base.a')
AGGREGATE = ('aggregate.a', 'unwind.a', 'proto.a', *UNWIND[1:], '-ljansson', '-lm')
SHIP = ('ship.a', 'proto.a', 'base.a', '-lcurl', '-lz', '-lzstd', '-ljansson', '-lm')


def example(header):
    """Returns the lines of the header's first comment that begin with a tab."""
    comment = (ROOT / header).read_text().split(' */')[0]
    lines = re.split(r'\n \* Example.*\n', comment)[1].splitlines()
    return ''.join(f'{line[3:]}\n' for line in lines)


def program(box, header, links):
    path = box.make_dir('example') / 'program'
    source = path.with_suffix('.c')
    source.write_text(example(header))
    libraries = [BUILD / word if word.endswith('.a') else word for word in links]
    subprocess.run(['gcc', '-std=gnu11', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-Werror', '-O1',
                    f'-I{ROOT}', source, '-o', path, *libraries], check=True)
    return path


def run(argv):
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def test_capture(box):
    path = program(box, 'lib/capture/capture.h', CAPTURE)
    target = box.target('shares')
    said = run([path, str(target.pid)]).splitlines()
    check(said.count(f'thread {target.pid}') > 10, f'{said}')
    target.signal(signal.SIGKILL)


def test_unwind(box):
    if platform.machine() != 'x86_64':
        raise Skip('its registers are those of x86_64')
    said = run([program(box, 'lib/unwind/unwind.h', UNWIND)]).splitlines()
    check(said[0] == 'main' and said[-1] == 'root', f'{said}')


def test_aggregate(box):
    chunk = json.loads(run([program(box, 'lib/aggregate/aggregate.h', AGGREGATE)]))
    check(len(chunk['profile']['samples']) == 101, f'{chunk}')


def test_ship(box):
    path = program(box, 'lib/ship/transport.h', SHIP)
    server = box.server(tls=False, status=200, script=[{'status': 200}])
    said = run([path, server.dsn, '{}'])
    check(said == '200 answered\n', said)
    envelope, = server.all_envelopes()
    check(len(envelope.items) == 1, f'{envelope.items}')


if __name__ == '__main__':
    harness.main(globals())
