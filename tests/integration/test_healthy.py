#!/usr/bin/python3
"""sentry-profctl healthy, as a probe runs it."""

import os
import shutil
import signal
import subprocess

import harness
import stranger
from harness import check, wait_for
from test_control import listening, sleeper


def probe(ctl):
    """Returns the exit status and the output."""
    done = subprocess.run([ctl.exe, 'healthy', '--socket', ctl.path],
                          capture_output=True, text=True, check=False)
    check(done.stdout == '' and done.stderr.count('\n') == (done.returncode != 0), f'{done}')
    return done.returncode, done.stderr


def test_a_daemon_that_works_and_one_that_has_ended(box):
    profd, ctl = listening(box, [sleeper(box)])
    profd.wait_attached()
    lacks = [one for one in ctl.status()['daemon']['degraded'] if one['breaks_promise']]
    check(probe(ctl)[0] == bool(lacks), f'{lacks}')
    if os.geteuid() == 0:
        done = ctl.run('healthy', uid=stranger.UID)
        check('warning: this user may not see what sentry-profd lacks' in done.stderr, f'{done}')
    profd.interrupt()
    status, why = probe(ctl)
    check(status == 1 and 'does not run' in why, why)
    ctl.run('healthy', 'x', status=2)


def test_a_daemon_that_hangs(box):
    profd, ctl = listening(box, [sleeper(box)])
    profd.signal(signal.SIGSTOP)
    wait_for(lambda: harness.state(profd.pid) == 'T', 'it stops')
    status, why = probe(ctl)
    check(status == 1 and 'has not answered for 10 s' in why, why)
    profd.signal(signal.SIGCONT)
    profd.wait_attached()
    profd.interrupt()


def test_a_daemon_without_capture(box):
    """capture was killed, and cannot be started again."""
    exes = box.make_dir('exes')
    for name in ('', '-capture', '-unwind', '-ship'):
        shutil.copy(harness.BUILD / f'sentry-profd{name}', exes)
    profd, ctl = listening(box, [sleeper(box)], exe=exes / 'sentry-profd')
    capture, = profd.wait_attached().helpers()['capture']
    (exes / 'sentry-profd-capture').unlink()
    os.kill(capture, signal.SIGKILL)
    wait_for(lambda: ctl.status()['daemon']['capture_pid'] != capture, 'capture has ended')
    status, why = probe(ctl)
    check(status == 1 and 'sentry-profd-capture does not run' in why, why)
    profd.signal(signal.SIGINT)
    profd.wait()


if __name__ == '__main__':
    harness.main(globals())
