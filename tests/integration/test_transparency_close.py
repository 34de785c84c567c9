#!/usr/bin/env python3
"""close(2) of a file of FUSE ends as it does without us.

It has given the descriptor back whatever it returns: made to go on, it would
close a stranger's. What it returns is the server's answer.
"""

import os
import subprocess

import harness
from harness import Skip, check
from test_transparency_calls import number

# So many closes without us, and with us.
CLOSES = 2000


def need_fuse():
    if os.geteuid() != 0:
        raise Skip('needs root')
    try:
        os.close(os.open('/dev/fuse', os.O_RDWR | os.O_CLOEXEC))
    except OSError as e:
        raise Skip(f'/dev/fuse: {os.strerror(e.errno)}') from None


def watch(box, how):
    """EINTR without us and with us; how many closes that were, and stats."""
    need_fuse()
    target = box.target('closes', how, box.make_dir('mount'),
                        stdin=subprocess.PIPE)

    def closes(n):
        goal = number(target, 'right') + n
        harness.wait_for(lambda: number(target, 'right') >= goal,
                         'a number of closes')
    closes(CLOSES)
    without = number(target, 'eintr')
    profd = box.profd([target], '--rate', '1000').wait_attached()
    closes(CLOSES)
    profd.interrupt()
    check(number(target, 'wrong') == 0, 'a descriptor was closed twice, or '
                                        'was not closed')
    return without, number(target, 'eintr') - without, profd.stats


def test_server_that_is_deaf(box):
    without, ours, _ = watch(box, 'deaf')
    check((without, ours) == (0, 0), f'EINTR: {without}, with us {ours}')


def test_server_that_is_polite(box):
    """docs/SAFETY.md: it is told of an interrupt, and may answer EINTR. That
    is rare, since a thread that waits is left alone."""
    without, ours, stats = watch(box, 'polite')
    check(without == 0, f'EINTR without us: {without}')
    check(ours < CLOSES // 20, f'{ours} of {CLOSES} closes failed with EINTR: '
                               f'{stats}')


if __name__ == '__main__':
    harness.main(globals())
