#!/usr/bin/python3
"""Errors are reported in one line, with status 1, or 2 for a wrong usage. The
target is left unchanged.
"""

import errno
import os
import pathlib
import re
import shutil
import subprocess

import harness
import stranger
from harness import BUILD, Skip, check, wait_for

# include/linux/sched.h
PF_KTHREAD = 0x00200000


def say_in_one_line(box, status, pattern, argv, **options):
    """Runs sentry-profd, which must end with this status and this line."""
    program = box.start(argv, **options)
    ended = program.wait()
    lines = program.stderr.splitlines()
    check(len(lines) == 1 and
          re.fullmatch(f'sentry-profd: {pattern}', lines[0]),
          f'not in one line "{pattern}": {program.stderr} '
          f'(arguments: {argv[1:]})')
    check(ended == status, f'status {ended}, not {status}: {lines[0]}')
    check(program.stdout == '', f'it also says {program.stdout}')


def refuse(box, status, pattern, *args, **options):
    say_in_one_line(box, status, pattern, [BUILD / 'sentry-profd', *args],
                    **options)


def check_untouched(target):
    check(target.running(), f'the target has ended: {target.report()}')
    for tid in harness.threads(target.pid):
        check(harness.tracer(tid) == 0 and harness.state(tid) not in 'tT',
              f'thread {tid}: tracer {harness.tracer(tid)}, state '
              f'{harness.state(tid)}')


def test_no_such_process(box):
    most = int(pathlib.Path('/proc/sys/kernel/pid_max').read_text())
    refuse(box, 1, f'no process {most + 1}: nothing runs here with this pid',
           '--pid', most + 1)


def test_no_event_loop(box):
    """Its first descriptor fails (tests/targets/faults.c)."""
    target = box.target('shares')
    say_in_one_line(box, 1, 'cannot start: Too many open files',
                    [BUILD / 'targets/faults', box.dir / 'report', 'broker',
                     'epoll_create1', '-', 1, errno.EMFILE,
                     BUILD / 'sentry-profd', '--pid', target.pid, '--output',
                     box.dir / 'output'])
    check_untouched(target)


def test_not_permitted(box):
    stranger.need_root()
    directory = stranger.copy(box, stranger.EXECUTABLES)
    target = box.target('shares')
    output = stranger.make_dir(box, 'output')
    say_in_one_line(box, 1, f'not permitted to trace process {target.pid}, '
                    'which runs as uid 0: .*run sentry-profd as root.*',
                    [directory / 'sentry-profd', '--pid', target.pid,
                     '--output', output], **stranger.options())
    check_untouched(target)


def test_forbidden_to_root(box):
    """The reason is not a missing capability, which is the usual one."""
    stranger.need_root()
    target = box.target('shares')
    say_in_one_line(box, 1, f'not permitted to trace process {target.pid}, '
                    'although CAP_SYS_PTRACE is present: .*AppArmor.*',
                    [BUILD / 'targets/untraceable', BUILD / 'sentry-profd',
                     '--pid', target.pid, '--output', box.dir / 'output'])
    check_untouched(target)


def test_kernel_thread(box):
    def is_kernel_thread(pid):
        fields = harness.proc_text(pid, 'stat').rpartition(')')[2].split()
        return fields and int(fields[6]) & PF_KTHREAD
    found = [p for p in os.listdir('/proc') if p.isdecimal() and
             is_kernel_thread(p)]
    if not found:
        raise Skip('no kernel thread is in sight')
    refuse(box, 1, rf'process {found[0]} \(.*\) is a kernel thread: .*',
           '--pid', found[0])


def test_zombie(box):
    child = subprocess.Popen(['true'], stdin=subprocess.DEVNULL)
    try:
        wait_for(lambda: harness.state(child.pid) == 'Z', 'a zombie')
        refuse(box, 1, f'process {child.pid} has ended already '
               r'\(it is a zombie\): .*', '--pid', child.pid)
    finally:
        child.wait()


def test_itself(box):
    say_in_one_line(box, 1, r'process \d+ is this sentry-profd itself: it cannot be profiled',
                    ['sh', '-c', 'exec "$0" --pid $$', BUILD / 'sentry-profd'])


def test_thread(box):
    target = box.target('shares')
    tid = [t for t in harness.threads(target.pid) if t != target.pid][0]
    refuse(box, 1, f'{tid} is a thread of process {target.pid}: '
           f'give --pid {target.pid}', '--pid', tid)
    check_untouched(target)


def test_one_of_two_is_wrong(box):
    """The valid target is not touched, whichever comes first."""
    target = box.target('shares')
    tid = [t for t in harness.threads(target.pid) if t != target.pid][0]
    for pids in ((target.pid, tid), (tid, target.pid)):
        refuse(box, 1, f'{tid} is a thread of process {target.pid}: '
               f'give --pid {target.pid}', '--pid', pids[0], '--pid', pids[1])
    check_untouched(target)


def refuse_for(box, target, pattern, *args, status=2, **options):
    refuse(box, status, pattern, '--pid', target.pid, *args, **options)


NO_NUMBER = ('', 'x', '1x', ' 1', '-1', '+1', '0x10', '1e2', '0', 'nan', 'inf',
             '99999999999999999999')
NUMBERS = {
    '--pid': ('not a number from 1 to 2147483647', ('2147483648', '1.5')),
    '--duration': ('not a positive number of seconds', ('.', '1.2.3')),
    '--rate': ('not a number from 1 to 1000', ('1001', '1.5')),
    '--chunk-seconds': ('not a number from 1 to 60', ('61', '1.5')),
    '--max-frames': ('not a number from 1 to 4096', ('4097', '1.5')),
}


def test_numbers(box):
    target = box.target('shares')
    for option, (problem, more) in NUMBERS.items():
        for value in NO_NUMBER + more:
            refuse_for(box, target,
                       f"{option}: {problem}: '{re.escape(value)}'.*",
                       option, value)
        refuse_for(box, target, f'{option}: needs a value .*', option)
    check_untouched(target)


def test_usage(box):
    target = box.target('shares')
    if not os.path.exists('/etc/sentry-profd/sentry-profd.conf'):
        refuse(box, 2, 'nothing to profile: no --pid and no command is given, and '
               'there is no /etc/sentry-profd/sentry-profd.conf .*')
    refuse_for(box, target, f"--pid: given twice: '{target.pid}'.*",
               '--pid', target.pid)
    refuse_for(box, target, '--pid: too many processes: .*',
               *[a for n in range(1, 257) for a in ('--pid', 1000000 + n)])
    refuse_for(box, target, r'--speed: not known \(.*', '--speed')
    # A value is never printed, because it may be a DSN.
    refuse_for(box, target, r'--dns: not known: did you mean --dsn\? \(--help '
               r'shows the usage\)', '--dns=https://secret@host/1')
    refuse(box, 2, rf'argument: not expected: did you mean --pid {target.pid}\? '
           r'\(.*', target.pid)
    refuse(box, 2, r'argument: not expected \(.*', 'https://secret@host/1')
    refuse(box, 2, r'-p: needs a value \(.*', '-p')
    refuse_for(box, target, "argument: not expected: 'now'.*", 'now')
    refuse_for(box, target, "--symbols: neither none, names nor lines: 'all'.*",
               '--symbols', 'all')
    refuse_for(box, target, "--platform: neither rust nor native: 'c'.*",
               '--platform', 'c')
    for option in ('--release', '--environment'):
        refuse_for(box, target, f'{option}: empty: .*', option, '')
        refuse_for(box, target, f'{option}: longer than 200 bytes: .*',
                   option, 'x' * 201)
        # The output is one line, whatever the argument contains.
        refuse_for(box, target, f'{option}: contains control characters: '
                   r"'a\\x0ab'.*", option, 'a\nb')
    check_untouched(target)


# The name of the executable is missing. A build without .git and .commit has no commit.
VERSION = r'{} \d+\.\d+\.\d+( \(commit [0-9a-f]{{12,}}\))?\n'


def test_each_executable_has_the_version_of_the_build(box):
    """The build's version file has the commit, so an executable that a new commit does not
    relink differs."""
    built = (BUILD / 'version').read_text()
    for name in ('sentry-profd', 'sentry-profctl', 'sentry-profd-metrics', 'sentry-profd-capture',
                 'sentry-profd-unwind', 'sentry-profd-ship', 'sentry-profd-oracle'):
        program = box.start([BUILD / name, '--version'])
        pattern = VERSION.format(name)
        if name == 'sentry-profd-unwind':
            pattern += r'libdw \d+\.\d+\n'
        check(program.wait() == 0 and program.stderr == '' and
              re.fullmatch(pattern, program.stdout) and
              program.stdout.startswith(f'{name} {built}'), f'{name}: {program.report()}')


def test_help_and_version(box):
    for option, pattern in (('--help', r'usage: sentry-profd .*--pid PID.*'),
                            ('--help-all', r'usage: sentry-profd .*--spool DIR.*'),
                            ('-h', r'usage: sentry-profd .*--pid PID.*'),
                            ('--version', VERSION.format('sentry-profd'))):
        program = box.start([BUILD / 'sentry-profd', option])
        check(program.wait() == 0 and program.stderr == '' and
              re.fullmatch(pattern, program.stdout, re.S),
              f'{option}: {program.report()}')


def test_short_options(box):
    """The short options -p, -d and -o, for use by hand."""
    output = box.make_dir('short') / 'out'
    program = box.start([BUILD / 'sentry-profd', '-p', box.target('shares').pid,
                         '-d', '0.5', '-o', output], env=harness.environment())
    check(program.wait() == 0 and os.listdir(output), program.report())


KEY = '0123456789abcdef0123456789abcdef'
DSNS = {
    f'ftp://{KEY}@localhost/1': 'does not start with https:// or http://',
    'https://localhost/1': 'has no public key',
    'https://@localhost/1': 'has no public key',
    f'https://{KEY[1:]}*@localhost/1': "'s public key has a character .*",
    f'https://{KEY}:a b@localhost/1': "'s secret key has a character .*",
    f'https://{KEY}@/1': 'has no host',
    f'https://{KEY}@local host/1': "'s host is neither .*",
    f'https://{KEY}@[::1/1': "'s host is neither .*",
    f'https://{KEY}@localhost:0/1': "'s port is not a number .*",
    f'https://{KEY}@localhost:65536/1': "'s port is not a number .*",
    f'https://{KEY}@localhost:https/1': "'s port is not a number .*",
    f'https://{KEY}@localhost/a?b/1': "'s path has a character .*",
    f'https://{KEY}@localhost': 'has no project id .*',
    f'https://{KEY}@localhost/': 'has no project id .*',
    f'https://{KEY}@localhost/1#2': "'s project id has a character .*",
    f'https://{KEY}@localhost/{"1" * 2000}': 'is too long',
}


def test_dsn(box):
    target = box.target('shares')
    for dsn, problem in DSNS.items():
        pattern = 'the DSN ?' + problem + \
                  ': expected https://KEY@HOST/PROJECT'
        refuse_for(box, target, '--dsn: ' + pattern, '--dsn', dsn)
        refuse_for(box, target, 'SENTRY_DSN: ' + pattern,
                   env=harness.environment(SENTRY_DSN=dsn))
    check_untouched(target)


def test_unwritable(box):
    """Paths that no user can write to, not even root."""
    target = box.target('shares')
    directory = box.make_dir('here')
    (directory / 'file').write_text('')
    for option, words in (('--output', 'cannot write into '),
                          ('--stats', 'cannot write ')):
        for path, error in (('absent/below', 'No such file or directory'),
                            ('file/below', 'Not a directory')):
            refuse_for(box, target, f'{words}{path}: {error}', option, path,
                       status=1, cwd=directory)
    refuse_for(box, target, 'cannot write into file: Not a directory',
               '--output', 'file', status=1, cwd=directory)
    refuse_for(box, target, 'cannot write .: Is a directory',
               '--stats', '.', status=1, cwd=directory)
    check(sorted(os.listdir(directory)) == ['file'],
          f'something was left: {os.listdir(directory)}')
    check_untouched(target)


def test_unwritable_by_a_stranger(box):
    """Directories of root, for another user."""
    stranger.need_root()
    executables = stranger.copy(box, stranger.EXECUTABLES)
    target = stranger.target(box, 'shares')
    directory = box.make_dir('roots')
    argv = [executables / 'sentry-profd', '--pid', target.pid]
    for args, pattern in (
            (('--output', directory), f'into {directory}'),
            (('--output', directory / 'new'), f'into {directory}/new'),
            (('--stats', directory / 'stats'), f'{directory}/stats'),
            ((), 'into the current directory')):
        say_in_one_line(box, 1, f'cannot write {pattern}: Permission denied',
                        argv + list(args), cwd=directory, **stranger.options())
    check(os.listdir(directory) == [], 'something was written')
    check_untouched(target)


def test_table_that_cannot_be_written(box):
    target = box.target('shares')
    program = box.start(
        ['sh', '-c', 'exec "$@" > /dev/full', 'sh', BUILD / 'sentry-profd',
         '--pid', target.pid, '--duration', '0.2',
         '--output', box.make_dir('output')])
    program.wait()
    check('sentry-profd: cannot write the table of the hottest functions to '
          'standard output: ' in program.stderr, program.stderr)
    check_untouched(target)


def test_statistics_that_cannot_be_written(box):
    target = box.target('shares')
    program = box.start([BUILD / 'sentry-profd', '--pid', target.pid, '--duration', '0.2',
                         '--output', box.make_dir('output'), '--stats', '/dev/full'])
    check(program.wait() == 1, program.report())
    check('cannot write the statistics to /dev/full: No space left on device\n'
          in program.stderr, program.stderr)
    check_untouched(target)


def test_without_its_other_executables(box):
    directory = box.make_dir('build')
    shutil.copy2(BUILD / 'sentry-profd', directory)
    target = box.target('shares')
    say_in_one_line(box, 1, 'sentry-profd-ship cannot be started: .*',
                    [directory / 'sentry-profd', '--pid', target.pid,
                     '--output', directory])
    check_untouched(target)


def test_others_are_not_started_by_hand(box):
    for name in stranger.EXECUTABLES[1:]:
        program = box.start([BUILD / name])
        check(program.wait() == 2 and program.stderr ==
              f'{name}: this program is started by sentry-profd, not by '
              'hand\n', program.report())


if __name__ == '__main__':
    harness.main(globals())
