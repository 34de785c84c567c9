#!/usr/bin/python3
"""Files at which unwind dies: after the third death they are not read any
more. dying.py replaces unwind by a process that dies; the real unwind is
killed while it reads a file.
"""

import contextlib
import errno
import os
import pathlib
import re
import shutil
import signal
import struct

import control
import harness
from harness import Skip, check, wait_for
from test_broker import check_sums, message_types, take_over

HERE = pathlib.Path(__file__).parent

LEFT_OUT = re.compile(r'sentry-profd: warning: degraded: files that are not read any more, '
                      r'because sentry-profd-unwind has died 3 times at (.*) for processes of '
                      r'uid (\d+) \(files so far: \d+\): .*\n')

# The number of checks while a process reads the files of a program, which it
# does most of that time.
LOOKS = 100

REFUSED = f'{errno.EACCES} 0 0'


def own_program(box):
    """Makes a program that no other test has, under an unusual name."""
    path = box.make_dir('program') / 'bad\nname\x1b[31m'
    shutil.copy(harness.BUILD / 'targets/shares', path)
    target = box.start([path])
    target.wait_line('ready.*')
    return path, target


def dying(box, target, how, *args):
    """Starts a broker whose unwind process dies in this way."""
    directory = take_over(box, 'unwind', (HERE / 'dying.py').read_text())
    (directory / 'types').write_text('\n'.join(message_types()))
    (directory / 'how').write_text(how)
    profd = box.profd([target], '--chunk-seconds', '1', '--shutdown-timeout',
                      '2', *args, exe=directory / 'sentry-profd')
    profd.exes = directory
    profd.answers = lambda: (directory / 'answers').read_text().splitlines() \
        if (directory / 'answers').exists() else []
    return profd


def end(profd):
    profd.signal(signal.SIGINT)
    check(profd.wait() in (0, 1, 3), profd.stderr)
    check_sums(profd)


def test_three_deaths(box):
    """Any way of dying counts, also an exit."""
    for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGXCPU, 0):
        path, target = own_program(box)
        profd = dying(box, target, f'own {int(number)}')
        wait_for(lambda p=profd: REFUSED in p.answers(), 'the file refused')
        answers = profd.answers()
        check(answers == ['0 1 1'] * 3 + [REFUSED], f'{number}: {answers}')
        end(profd)
        left_out = LEFT_OUT.findall(profd.stderr)
        # Control bytes are escaped in the output.
        shown = str(path).replace('\n', '\\x0a').replace('\x1b', '\\x1b')
        check(left_out == [(shown, str(os.getuid()))],
              f'{number}: {profd.stderr}')
        check(profd.stats['files_left_out'] == 1, f'{profd.stats}')
        target.end()


def test_what_counts_for_no_file(box):
    """SIGKILL and SIGTERM come from other processes, so they do not count.
    Neither does a number of no file, or of a file that was not handed over."""
    for how in (f'own {int(signal.SIGKILL)}', f'own {int(signal.SIGTERM)}',
                f'0 {int(signal.SIGSEGV)}', f'2 {int(signal.SIGSEGV)}'):
        _, target = own_program(box)
        profd = dying(box, target, how)
        wait_for(lambda p=profd: len(p.answers()) >= 4, 'four lives')
        check(set(profd.answers()) == {'0 1 1'}, f'{how}: {profd.answers()}')
        end(profd)
        check('not read any more' not in profd.stderr, profd.stderr)
        check(profd.stats['files_left_out'] == 0, f'{profd.stats}')
        target.end()


def test_another_file_of_the_name(box):
    """A changed file may be read again, until three further deaths."""
    path, target = own_program(box)
    profd = dying(box, target, f'own {int(signal.SIGSEGV)}')
    lives = ['0 1 1'] * 3 + [REFUSED]
    wait_for(lambda: profd.answers() == lives, 'the file refused')
    path.chmod(0o700)
    os.kill(int((profd.exes / 'pid').read_text()), signal.SIGKILL)
    wait_for(lambda: len(profd.answers()) == 8, 'four more lives')
    check(profd.answers() == lives * 2, f'{profd.answers()}')
    end(profd)
    check(len(LEFT_OUT.findall(profd.stderr)) == 2, profd.stderr)


def test_status_and_reload(box):
    """The status shows excluded files; a reload clears the list."""
    path, target = own_program(box)
    where = box.make_dir('run') / 'sub' / 'profd.sock'
    conf = box.make_dir('config') / 'profd.conf'
    conf.write_text('[profiler]\n'
                    f'[target "bad"]\nexe = {path.parent}/*\nautostart = yes\n'
                    'profile_session_sample_rate = 1.0\n')
    conf.chmod(0o600)
    directory = take_over(box, 'unwind', (HERE / 'dying.py').read_text())
    (directory / 'types').write_text('\n'.join(message_types()))
    (directory / 'how').write_text(f'own {int(signal.SIGSEGV)}')
    profd = box.profd([], '--config', conf, '--socket', where,
                      '--shutdown-timeout', '2', exe=directory / 'sentry-profd')
    ctl = control.Control(box, where)
    wait_for(lambda: control.listens(where), 'the socket')

    def left_out(**options):
        return ctl.status(**options)['daemon']['files_left_out']
    wait_for(left_out, 'a file that is left out')
    shown = ''.join(c if ' ' <= c <= '~' else '?' for c in str(path))
    check(left_out() == [{'file': shown, 'uid': os.getuid(), 'deaths': 3}],
          f'{left_out()}')
    table = ctl.run('status').stdout
    check(f'{shown} is not read for uid {os.getuid()}: the unwinder died '
          'reading it 3 times\n' in table, table)
    if os.getuid() == 0:
        check(left_out(uid=12345) == [], 'others see it')
    ctl.run('reload')
    check(left_out() == [], 'it is left out after a reload')
    target.end()
    profd.signal(signal.SIGINT)
    check(profd.wait() in (0, 1, 3), profd.stderr)


# The real unwind.

def page_of(pid):
    """Returns the address of its page."""
    for line in harness.proc_text(pid, 'maps').splitlines():
        if line.endswith('/memfd:reading (deleted)'):
            return int(line.partition('-')[0], 16)
    return None


def word_of(pid):
    """Returns the word in the page of a stopped process."""
    with open(f'/proc/{pid}/mem', 'rb', 0) as mem:
        mem.seek(page_of(pid))
        return struct.unpack('=I', mem.read(4))[0]


def is_at_a_file(pid):
    """Stops the process; returns true, and leaves it stopped, if it is reading
    a file."""
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: harness.state(pid) in 'TZ', 'it to stop')
    if harness.state(pid) == 'T' and word_of(pid):
        return True
    os.kill(pid, signal.SIGCONT)
    return False


def end_at_a_file(profd):
    """Lets a new process run for short times until it reads a file, and kills
    it there. A process that has read all files is killed by a signal that does
    not count."""
    def fresh():
        pid = (profd.helpers()['unwind'] or [0])[0]
        return pid if pid and page_of(pid) else None
    pid = wait_for(fresh, 'an unwind process')
    found = any(is_at_a_file(pid) for _ in range(LOOKS))
    os.kill(pid, signal.SIGSEGV if found else signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
    wait_for(lambda: pid not in profd.helpers()['unwind'], 'its end')


def test_the_real_one(box):
    """unwind notes which file it reads. When a file is excluded, the other
    files have names, and there are still stacks."""
    if os.geteuid() != 0:
        raise Skip('what unwind has in memory is root\'s to see')
    # A large program, so that reading it takes long; it works for a part of the time.
    target = box.start(['/usr/bin/python3', '-c', 'import time\n'
                        'while True: time.sleep(0.02); sum(range(100000))'])
    harness.wait_work(target.pid, 0.1)
    profd = box.profd([target], '--chunk-seconds', '1').wait_attached()

    left_out = []
    while not left_out:
        end_at_a_file(profd)
        left_out = LEFT_OUT.findall(profd.stderr)
    wait_for(lambda: profd.helpers()['unwind'], 'another unwind')
    profd.wait_chunks(3)
    chunk = profd.chunks[-1]
    profd.interrupt()
    check_sums(profd)
    check(chunk['profile']['samples'], 'no samples')
    images = [i['code_file'] for i in chunk['debug_meta']['images']]
    check(left_out[0][0] not in images, f'{left_out}: {images}')
    check(profd.stats['files_left_out'] == 1, f'{profd.stats}')


if __name__ == '__main__':
    harness.main(globals())
