#!/usr/bin/python3
"""The writer and the reader of a ring are ordered by their messages: ThreadSanitizer finds no race."""

import subprocess

import harness
from harness import ROOT, check

SOURCES = (ROOT / 'tests/integration/order/ring_sides.c', ROOT / 'lib/base/ring.c')


def run(box, *flags):
    path = box.make_dir('order') / 'ring_sides'
    subprocess.run(['gcc', '-std=gnu11', '-D_GNU_SOURCE', f'-I{ROOT}', '-O1', '-g', '-pthread',
                    '-fsanitize=thread', *flags, *SOURCES, '-o', path], check=True)
    # ThreadSanitizer of gcc 12 fails on kernels that randomise more bits of an address.
    return subprocess.run(['setarch', '-R', path], capture_output=True, text=True, check=False,
                          timeout=120, env={'TSAN_OPTIONS': 'halt_on_error=1'})


def test_the_messages_order_both_sides(box):
    done = run(box)
    check((done.returncode, done.stdout) == (0, 'done\n'), f'{done}')


def test_a_position_without_order_is_found(box):
    done = run(box, '-DUNORDERED')
    check(done.returncode != 0 and 'data race' in done.stderr, f'{done}')


if __name__ == '__main__':
    harness.main(globals())
