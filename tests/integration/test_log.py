#!/usr/bin/python3
"""Lines on stderr begin with a priority if stderr is the journal's stream,
those of the children, too; otherwise they do not. sentry-profd does not wait for
their reader.
"""

import contextlib
import os
import re

import harness
from control import Control
from harness import check, wait_for
from service import Service


def journal(box):
    """A file that replaces the journal's stream."""
    path = box.make_dir('journal') / 'stream'
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    st = os.fstat(fd)
    return path, fd, f'{st.st_dev}:{st.st_ino}'


def run(box, variable):
    """Runs sentry-profd with this stream as stderr; returns its lines."""
    path, fd, own = journal(box)
    target = box.target('shares')
    # With a server, unwind warns that no release is set.
    server = box.server()
    env = dict(server.env, JOURNAL_STREAM=variable or own)
    # The harness redirects stderr first, and the shell afterwards.
    profd = box.profd([target], '--debug', '--dsn', server.dsn, env=env,
                      wrapper=['sh', '-c', 'exec "$@" 2>&' + str(fd), 'sh'],
                      pass_fds=[fd])
    os.close(fd)
    profd.wait_attached().wait_looks().interrupt()
    return path.read_text().splitlines()


def test_journal(box):
    lines = run(box, None)
    bad = [l for l in lines if not re.match(r'<[347]>sentry-profd', l)]
    check(lines and not bad, bad)
    # A line of a child, and a line of each priority except errors.
    check(any(re.match(r'<4>sentry-profd-unwind: warning: process \d+: no release', l)
              for l in lines), lines)
    check(any(l.startswith('<7>sentry-profd: debug: attached')
              for l in lines), lines)
    check(any(l.startswith('<7>sentry-profd-capture: debug: ')
              for l in lines), lines)


def test_not_the_journal(box):
    """The variable is inherited, but stderr was redirected since."""
    lines = run(box, '1:1')
    bad = [l for l in lines if not l.startswith('sentry-profd')]
    check(lines and not bad, bad)


def test_error(box):
    """Priority 3, also for faults of the command line."""
    path, fd, own = journal(box)
    program = box.start(['sh', '-c', 'exec "$@" 2>&' + str(fd), 'sh',
                         harness.BUILD / 'sentry-profd', '--pid', 'x'],
                        env=harness.environment(JOURNAL_STREAM=own),
                        pass_fds=[fd])
    os.close(fd)
    check(program.wait() == 2, 'status')
    check(path.read_text().startswith('<3>sentry-profd: '), path.read_text())


def fill(pipe):
    """Fills a pipe, by a description of its own."""
    fd = os.open(f'/proc/self/fd/{pipe}', os.O_WRONLY | os.O_NONBLOCK)
    for size in (4096, 1):
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(fd, b'x' * size)
    os.close(fd)


def read_all(pipe):
    text = b''
    with contextlib.suppress(BlockingIOError):
        while data := os.read(pipe, 1 << 16):
            text += data
    return text.decode()


def test_a_reader_that_does_not_read(box):
    """stderr is a full pipe: the service works all the same. When the pipe is read again, a line
    says how many lines are missing. With a full pipe the service ends."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    fill(writer)
    # Of the second section there is a warning before anything else.
    service = Service(box, {'a': {}, 'b': {'profile_session_sample_rate': None}},
                      wrapper=['sh', '-c', f'exec "$@" 2>&{writer}', 'sh'], pass_fds=[writer])
    ctl = Control(box, service.dir / 'socket')
    target = service.start('a')
    service.wait_profiled(target.pid)
    wait_for(lambda: ctl.target(target.pid)['samples_taken'] > 50, 'samples')
    ctl.run('reload')

    def kinds():
        return [row['kind'] for row in ctl.status()['daemon']['degraded']]
    wait_for(lambda: 'log' in kinds(), 'the degraded state')
    service.profd.wait_chunks(2)
    check(os.get_blocking(writer), 'the description of the other writers is as it was')
    read_all(reader)
    text = ''

    def has_number():
        nonlocal text
        text += read_all(reader)
        return 'missing here' in text
    wait_for(has_number, 'the number of lost lines')
    check(re.match(r'sentry-profd: warning: \d+ lines of the log are missing here', text), text)
    check(text.count('missing here') == 1, text)
    wait_for(lambda: 'log' not in kinds(), 'the end of the state')
    fill(writer)
    service.stop()


if __name__ == '__main__':
    harness.main(globals())
