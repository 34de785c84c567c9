#!/usr/bin/env python3
"""close(2) of a FUSE file ends as without the profiler. The call has released
the descriptor whatever it returns; if it were restarted, it would close
another file's descriptor. Its result is the server's answer.
"""

import os
import subprocess

import harness
from harness import Skip, check
from test_transparency_calls import number

harness.filters_kill()

# The number of calls without and with the profiler.
CLOSES = 2000


def need_fuse():
    if os.geteuid() != 0:
        raise Skip('needs root')
    try:
        os.close(os.open('/dev/fuse', os.O_RDWR | os.O_CLOEXEC))
    except OSError as e:
        raise Skip(f'/dev/fuse: {os.strerror(e.errno)}') from None


def watch(box, how):
    """Returns the numbers of EINTR without and with the profiler, the number
    of calls, and the statistics."""
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
    """docs/SAFETY.md: the server receives the interrupt, and may answer EINTR.
    That is rare, because a waiting thread is not interrupted."""
    without, ours, stats = watch(box, 'polite')
    check(without == 0, f'EINTR without us: {without}')
    check(ours < CLOSES // 20, f'{ours} of {CLOSES} closes failed with EINTR: '
                               f'{stats}')


if __name__ == '__main__':
    harness.main(globals())
