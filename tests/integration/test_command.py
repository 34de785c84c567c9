#!/usr/bin/python3
"""sentry-profd starts a command. The command is profiled from its beginning,
inherits everything from the caller, and gets the terminal's signals as without
sentry-profd. Its exit status is that of sentry-profd.
"""

import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import termios

import harness
import stranger
from account import check_sums
from harness import BUILD, check, in_turns, wait_for

# Prints each signal that it gets. The last two signals end it.
SAYS = '''
import os, signal
read, write = os.pipe()
os.set_blocking(write, False)
signal.set_wakeup_fd(write)
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda *of: None)
print(f"ready {os.getpid()}", flush=True)
while True:
    number = os.read(read, 1)[0]
    print(f"got {signal.Signals(number).name}", flush=True)
    if number in (signal.SIGTERM, signal.SIGHUP):
        os._exit(3)
'''
# Sends a signal to its process group. Its exit status is how often the signal
# came.
SENDS = '''
import os, signal, time
read, write = os.pipe()
os.set_blocking(write, False)
signal.set_wakeup_fd(write)
signal.signal(signal.SIGTERM, lambda *of: None)
os.kill(0, signal.SIGTERM)
time.sleep(0.3)
os._exit(len(os.read(read, 100)))
'''
PYTHON = '/usr/bin/python3'
# Work for a shell that lasts some ticks, so that there is a chunk.
WORK = 'i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; '


def command(box, *argv, options=(), status=0, **more):
    """Runs a command to its end."""
    return box.profd([], *options, '--', *argv, **more).finish(status)


def started(box, *argv, options=(), **more):
    """Starts a run whose command has printed "ready PID"; returns also that
    pid."""
    profd = box.profd([], *options, '--', *argv, **more)
    pid = int(profd.wait_line(r'ready (\d+)')[1])
    profd.pids = [pid]
    return profd, pid


def test_exit_status(box):
    for text, status in (('exit 0', 0), ('exit 7', 7), ('exit 255', 255),
                         ('kill -KILL $$', 137), ('kill -TERM $$', 143),
                         ('kill -SEGV $$', 139)):
        profd = command(box, 'sh', '-c', text, status=status)
        check(profd.stats['duration_s'] >= 0, 'it has no figures')


def has_names(profd):
    """Returns whether all samples of a brief command were in known files."""
    unwind = profd.stats['unwind']
    names = {f.get('function') for chunk in profd.chunks
             for f in chunk['profile']['frames']}
    return unwind['complete'] > 3 and unwind['unknown_releases'] == 0 and \
        'no_map' not in unwind['failed'] and \
        {'main', '__libc_start_main'} <= names


def test_brief_commands(box):
    """The files of a command that ends after 15 ms are opened before it ends,
    also those that it maps after its first sample. On a busy machine unwind
    may come too late."""
    def attempt():
        good = sum(has_names(command(box, BUILD / 'targets/brief', 15,
                                     options=('--rate', 997)))
                   for _ in range(10))
        return [] if good >= 7 else [f'{10 - good} of 10 lack names']
    in_turns(attempt)


def test_a_command_without_a_sample(box):
    """One line says so, in place of an empty table and a directory that is gone."""
    directory = box.make_dir('brief')
    done = subprocess.run([BUILD / 'sentry-profd', '--rate', '1', '--', 'true'], cwd=directory,
                          capture_output=True, text=True, check=True)
    said = done.stderr.splitlines()
    check(said[-1].startswith('no samples were taken: ') and '--rate 1000' in said[-1] and
          len(said) == 2, f'{said}')
    check(list(directory.iterdir()) == [], 'a directory is left')


def test_commands_that_cannot_be_executed(box):
    directory = box.make_dir('files')
    plain = directory / 'plain'
    plain.write_text('#!/bin/sh\n')
    broken = directory / 'broken'
    broken.write_text('#!/no/such/interpreter\n')
    broken.chmod(0o755)
    script = directory / 'script'
    script.write_text('exit 9\n')
    script.chmod(0o755)
    path = f'{directory}:{os.environ["PATH"]}'
    for name, status, line in (
            ('no-such-command', 127, 'no-such-command: command not found'),
            ('/no/such', 127, '/no/such: No such file or directory'),
            ('', 127, ': command not found'),
            (plain, 126, f'{plain}: Permission denied'),
            ('plain', 126, 'plain: Permission denied'),
            (directory, 126, f'{directory}: Is a directory'),
            ('broken', 127, f'{broken}: No such file or directory'),
            ('script', 9, None)):
        profd = command(box, name, status=status,
                        env=harness.environment(PATH=path))
        if line:
            check(f'sentry-profd: {line}\n' in profd.stderr, profd.stderr)


def test_from_the_first_instruction(box):
    """The loader is profiled, too, but not the process before it executes the
    command."""
    profd, pid = started(box, BUILD / 'targets/shares')
    harness.wait_work(pid, 0.5)
    os.kill(pid, signal.SIGTERM)
    profd.finish(143)
    images = {i['code_file'] for c in profd.chunks
              for i in c['debug_meta']['images']}
    names = {f.get('function') for c in profd.chunks
             for f in c['profile']['frames']}
    check(not any(os.path.basename(i).startswith('sentry-profd')
                  for i in images), f'{images}')
    check({'busy_seventy', 'main'} <= names, f'{names}')
    check(len(profd.chunks) == 1, f'{len(profd.chunks)} chunks')
    check_sums(profd.stats, arrived='written')


def test_streams(box):
    """The command has its own input and output. sentry-profd holds none of
    them open."""
    source, sink = os.pipe(), os.pipe()
    script = f'cat; exec >&-; {WORK} read line <&3; exit 4'
    wait = os.pipe()
    directory = box.make_dir('profd')
    process = subprocess.Popen(
        [BUILD / 'sentry-profd', '--output', directory / 'output', '--spool',
         'none', '--', 'sh', '-c', f'exec 3<&{wait[0]}; {script}'],
        stdin=source[0], stdout=sink[1], stderr=subprocess.PIPE,
        pass_fds=[wait[0]], env=harness.environment())
    for fd in (source[0], sink[1], wait[0]):
        os.close(fd)
    os.write(source[1], b'all of it\n')
    os.close(source[1])
    with os.fdopen(sink[0], 'rb') as reader:
        # The end of the output comes while the command still runs.
        check(reader.read() == b'all of it\n', 'not what cat has written')
    check(process.poll() is None, 'it has ended already')
    os.write(wait[1], b'\n')
    os.close(wait[1])
    said = process.communicate()[1].decode()
    check(process.returncode == 4, f'{process.returncode}')
    check('Hottest functions' in said and '1 envelope in' in said, said)


# Everything that a process inherits from its parent, except pids.
HAS = '''
env | sort; umask; ulimit -aS; ulimit -aH; nice
grep -E "^(Uid|Gid|Groups|Sig(Blk|Ign|Cgt)|ShdPnd|Cap...|NoNewPrivs|Seccomp):" \
    /proc/self/status
cat /proc/self/oom_score_adj /proc/self/cgroup
ls -l /proc/self/fd | sed "s/.*[0-9]:[0-9]* //" | grep -v /proc
'''
AS_CALLER = ('trap "" PIPE USR1 TTIN; umask 027; ulimit -Sn 100; '
             'ulimit -Sc 0; exec "$@"')


def test_has_what_its_caller_has(box):
    wrapper = ['nice', '-n', '3', 'sh', '-c', AS_CALLER, 'sh']
    env = harness.environment(http_proxy='http://127.0.0.1:9', A_NAME='value')
    without = box.start([*wrapper, 'sh', '-c', HAS], env=env)
    check(without.wait() == 0, without.stderr)
    profd = command(box, 'sh', '-c', HAS, wrapper=wrapper, env=env)
    # The files of the harness, and the shell's own pipe.
    texts = [re.sub(r'/\S*\.(stdout|stderr)$|pipe:\S*', r'the \1', p.stdout,
                    flags=re.M) for p in (without, profd)]
    check(texts[0] == texts[1] and 'A_NAME=value' in texts[0],
          f'{texts[0]}\n---\n{texts[1]}')


class Terminal:
    """An interactive shell with job control, on a terminal of its own."""

    def __init__(self, box):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            harness.libc.prctl(harness.PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            os.chdir(box.make_dir('terminal'))
            os.execve('/bin/bash', ['bash', '--norc', '--noprofile', '-i'],
                      harness.environment(PS1='$ ', HISTFILE=''))
        settings = termios.tcgetattr(self.fd)
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(self.fd, termios.TCSANOW, settings)
        fcntl.fcntl(self.fd, fcntl.F_SETFL, os.O_NONBLOCK)
        self.text = ''

    def read(self):
        while select.select([self.fd], [], [], 0)[0]:
            try:
                self.text += os.read(self.fd, 65536).decode(errors='replace')
            except OSError:
                break
        return self.text

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait_text(self, pattern, times=1):
        """Waits until the text has ended this many times; returns the last
        match."""
        def look():
            found = list(re.finditer(pattern, self.read()))
            return found[-1] if len(found) >= times else None
        try:
            return wait_for(look, f'"{pattern}" on the terminal')
        except harness.Failure as e:
            raise harness.Failure(f'{e}: {self.text}') from None

    def end(self):
        for pid in [*harness.children(self.pid), self.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


@contextlib.contextmanager
def terminal(box):
    t = Terminal(box)
    try:
        yield t
    finally:
        t.end()


PROFD = f'{BUILD}/sentry-profd --spool none --quiet -o output'


def test_interrupt_at_a_terminal(box):
    """^C reaches the command once, and sentry-profd ends as the command ends.
    """
    script = box.make_dir('script') / 'says.py'
    script.write_text(SAYS)
    with terminal(box) as t:
        t.type(f'{PROFD} -- {PYTHON} {script}; echo "status $?"\n')
        pid = int(t.wait_text(r'ready (\d+)\r')[1])
        t.type('\x03')
        t.wait_text('got SIGINT')
        t.type('\x1c')
        t.wait_text('got SIGQUIT')
        t.type('\x03')
        t.wait_text('got SIGINT', times=2)
        os.kill(pid, signal.SIGTERM)
        t.wait_text(r'status 3\r')
        check(t.text.count('got SIGINT') == 2 and
              t.text.count('got SIGQUIT') == 1, t.text)
        t.type(f'{PROFD} -- sh -c "echo ready; exec sleep 1000"; '
               'echo "status $?"\n')
        t.wait_text(r'ready\r')
        t.type('\x03')
        t.wait_text(r'status 130\r')


def test_stopped_at_a_terminal(box):
    """^Z stops sentry-profd and the command; fg continues both."""
    with terminal(box) as t:
        t.type(f'{PROFD} -- {BUILD}/targets/shares; echo "status $?"\n')
        pid = int(t.wait_text(r'ready (\d+)\r')[1])
        parent = int(re.search(r'PPid:\s+(\d+)', harness.proc_text(
            pid, 'status'))[1])
        for n in range(1, 3):
            wait_for(lambda: harness.tracer(pid), 'it is profiled')
            t.type('\x1a')
            t.wait_text('Stopped', times=n)
            check(harness.state(parent) == 'T', 'the daemon is not stopped')
            check(harness.tracer(pid) == 0, 'it is traced while it is stopped')
            # After detaching, the command runs for a moment before it is
            # stopped again.
            wait_for(lambda: harness.state(pid) == 'T', 'it is stopped')
            t.type('fg\n')
            used = harness.cpu_seconds(pid)
            wait_for(lambda: harness.cpu_seconds(pid) > used, 'it goes on')
        wait_for(lambda: harness.tracer(pid), 'it is profiled again')
        os.kill(pid, signal.SIGTERM)
        # bash skips the rest of the line after a stopped job.
        t.type('echo "status $?"\n')
        t.wait_text(r'status 143\r')


def test_it_stops_by_itself(box):
    """Like a program that has the terminal's keys: the shell sees the stop."""
    with terminal(box) as t:
        t.type(f'{PROFD} -- sh -c "kill -TSTP \\$\\$; echo on; exit 6"\n')
        t.wait_text('Stopped')
        t.type('fg; echo "status $?"\n')
        t.wait_text(r'on\r')
        t.wait_text(r'status 6\r')


def test_in_the_background(box):
    """A background command that reads from the terminal is stopped, and the
    shell sees it."""
    with terminal(box) as t:
        t.type(f'{PROFD} -- sh -c "read line; echo read \\$line" &\n')
        t.type('\n' * 2)

        def stopped():
            t.type('\n')
            return 'Stopped' in t.read()
        wait_for(stopped, 'it is stopped')
        t.type('fg; echo "status $?"\n')
        t.type('something\n')
        t.wait_text(r'read something\r')
        t.wait_text(r'status 0\r')


def test_signals_by_kill(box):
    """A signal to sentry-profd's pid is passed to the command. A signal that
    the command sends to its group does not come back."""
    profd, pid = started(box, PYTHON, '-c', SAYS)
    profd.signal(signal.SIGINT)
    profd.wait_line('got SIGINT')
    profd.signal(signal.SIGTERM)
    profd.finish(3)
    check(profd.stdout.splitlines() == [f'ready {pid}', 'got SIGINT',
                                        'got SIGTERM'], profd.stdout)
    command(box, PYTHON, '-c', SENDS, status=1, process_group=0)


def test_the_profile_ends_first(box):
    profd, pid = started(box, BUILD / 'targets/shares',
                         options=['--duration', '0.5'])
    wait_for(profd.stats_path.exists, 'the figures')
    wait_for(lambda: harness.tracer(pid) == 0, 'it is let go of')
    check(profd.running(), 'we have ended before the command')
    used = harness.cpu_seconds(pid)
    wait_for(lambda: harness.cpu_seconds(pid) > used, 'it goes on')
    profd.signal(signal.SIGTERM)
    profd.finish(143)


def test_lost_chunks(box):
    """Lost chunks are reported in a line, and do not change the exit status.
    """
    dsn = f'http://key@127.0.0.1:{harness.free_port()}/1'
    profd = command(box, 'sh', '-c', f'{WORK} exit 5', status=5, output=False,
                    options=['--dsn', dsn, '--shutdown-timeout', '0.1'])
    check('everything is lost' in profd.stderr, profd.stderr)


def test_daemon_is_killed(box):
    """The command runs on, as if its shell had ended."""
    profd, pid = started(box, BUILD / 'targets/shares')
    wait_for(lambda: harness.tracer(pid), 'it is profiled')
    profd.process.kill()
    profd.wait()
    wait_for(lambda: harness.tracer(pid) == 0, 'it is let go of')
    used = harness.cpu_seconds(pid)
    wait_for(lambda: harness.cpu_seconds(pid) > used, 'it goes on')
    os.kill(pid, signal.SIGKILL)


def held(box):
    """Starts a run whose child waits to execute, because capture never gets
    ready. Returns also the file that the command would make."""
    directory = box.make_dir('bin')
    for name in ('sentry-profd', 'sentry-profd-unwind', 'sentry-profd-ship'):
        shutil.copy2(BUILD / name, directory / name)
    capture = directory / 'sentry-profd-capture'
    capture.write_text('#!/bin/sh\nexec sleep 1000\n')
    capture.chmod(0o755)
    made = directory / 'made'
    profd = box.profd([], '--', 'touch', made, exe=directory / 'sentry-profd')
    wait_for(lambda: any(harness.exe_name(p) == 'sleep'
                         for p in harness.children(profd.pid)), 'capture')
    # The child has no name of its own yet, because it is a copy of the broker.
    child = wait_for(lambda: [p for p in harness.children(profd.pid)
                              if harness.exe_name(p) == 'sentry-profd'],
                     'the child')[0]
    return profd, child, made


def test_daemon_is_killed_before_the_start(box):
    """The child ends, because no process is left that would let it execute."""
    profd, child, made = held(box)
    sleeper = [p for p in harness.children(profd.pid)
               if harness.exe_name(p) == 'sleep']
    profd.process.kill()
    profd.wait()
    wait_for(lambda: harness.state(child) in ('Z', '', None),
             'the child has ended')
    check(not made.exists(), 'the command was executed')
    for pid in sleeper:
        os.kill(pid, signal.SIGKILL)


def test_interrupted_before_the_start(box):
    profd, child, made = held(box)
    sleeper = [p for p in harness.children(profd.pid)
               if harness.exe_name(p) == 'sleep']
    profd.signal(signal.SIGINT)
    wait_for(lambda: harness.state(child) in ('Z', '', None),
             'the child has ended')
    for pid in sleeper:
        os.kill(pid, signal.SIGKILL)
    profd.finish(130)
    check(not made.exists(), 'the command was executed')


def test_it_cannot_be_attached_to(box):
    """The kernel does not let any process read the memory of a program whose
    file its user may not read. The program is not executed, and a line gives
    the reason."""
    stranger.need_root()
    exes = stranger.copy(box, stranger.EXECUTABLES)
    (exes / 'sentry-profd').chmod(0o711)
    directory = stranger.make_dir(box, 'profd')
    made = directory / 'made'
    profd = box.profd([], '--', 'touch', made, exe=exes / 'sentry-profd',
                      directory=directory, **stranger.options())
    profd.finish(125)
    check('not permitted to trace process' in profd.stderr, profd.stderr)
    check(not made.exists(), 'the command was executed')


def test_as_an_ordinary_user(box):
    profd = stranger.profd(box, [], '--', 'sh', '-c',
                           'while [ ! -e "$0" ]; do id -u; done; exit 8',
                           box.dir / 'over')
    wait_for(lambda: 'samples' in profd.stdout or profd.stdout.count('\n') > 50,
             'some work')
    (box.dir / 'over').touch()
    profd.finish(8)
    check(set(profd.stdout.split()) == {str(stranger.UID if os.geteuid() == 0
                                            else os.getuid())}, 'another user')
    check(profd.stats['samples_taken'] > 0, f'{profd.stats}')


LINE = 'is set-user-ID, set-group-ID or has capabilities: the kernel ignores'


def test_files_with_privileges(box):
    """An ordinary user is warned before the start that the file's privileges
    have no effect."""
    stranger.need_root()
    directory = box.make_dir('bin')
    program = directory / 'id'
    shutil.copy2('/usr/bin/id', program)
    program.chmod(0o4755)
    profd = stranger.profd(box, [], '--', program, '-u')
    profd.finish()
    check(LINE in profd.stderr, profd.stderr)
    check(profd.stdout == f'{stranger.UID}\n', profd.stdout)
    program.chmod(0o755)
    profd = stranger.profd(box, [], '--', program, '-u')
    profd.finish()
    check(LINE not in profd.stderr, profd.stderr)
    # Root has CAP_SYS_PTRACE, so the set-user-ID bit works as without
    # sentry-profd.
    os.chown(program, stranger.UID, 0)
    program.chmod(0o4755)
    profd = command(box, program, '-u')
    check(LINE not in profd.stderr, profd.stderr)
    check(profd.stdout == f'{stranger.UID}\n', profd.stdout)


def test_as_another_user(box):
    stranger.need_root()
    script = 'id -u; id -G; echo "$HOME $USER $LOGNAME $A_NAME"'
    profd = command(box, 'sh', '-c', script, options=['--user', 'daemon'],
                    env=harness.environment(A_NAME='value'))
    expected = subprocess.run(
        ['su', '-s', '/bin/sh', 'daemon', '-c', script], capture_output=True,
        env=harness.environment(A_NAME='value'), check=True).stdout.decode()
    check(profd.stdout == expected, f'{profd.stdout}\n---\n{expected}')
    check(profd.stats['rights_changes'] == 0, 'its rights are those of the user from the start')
    profd = command(box, 'true', options=['--user', 'no-such-user'], status=125)
    check('there is no user no-such-user' in profd.stderr, profd.stderr)
    profd = stranger.profd(box, [], '--user', 'daemon', '--', 'true').finish(125)
    check('cannot become user daemon' in profd.stderr, profd.stderr)


def test_usage(box):
    for args, line in ((['--'], '--: needs a command'),
                       (['--user', 'daemon', '--pid', '1'],
                        '--user: needs a command after --'),
                       (['stray', '--', 'true'], "not expected: 'stray'")):
        profd = box.profd([], *args)
        profd.finish(2)
        check(line in profd.stderr, profd.stderr)
    # An option's value may be "--", and the command may have options of its
    # own.
    profd = box.profd([], '--release', '--', '--', 'sh', '-c', f'{WORK} exit 6',
                      '--pid', '--')
    profd.finish(6)
    check({c['release'] for c in profd.chunks} == {'--'}, 'another release')


if __name__ == '__main__':
    harness.main(globals())
