#!/usr/bin/python3
"""--output FILE: one run profiles and converts. The conversion has no rights,
the file is complete or not there, and nothing is lost if the conversion fails.
Also sentry-profctl view, which shows a page in the browser.
"""

import os
import pathlib
import re
import shutil
import signal
import stat

import formats
import harness
import stranger
from harness import BUILD, check, wait_for
from test_command import PYTHON, terminal

EXECUTABLES = (*stranger.EXECUTABLES, 'sentry-profctl')
# A program that works for a while and ends.
WORKS = ('import time\n'
         'until = time.process_time() + 0.3\n'
         'while time.process_time() < until: pass')
NEXT = 'to see it: '
SYS_LANDLOCK_CREATE_RULESET = 444
# Each name is NAME.SUFFIX; NAME contains a dot itself.
FILES = {
    'p.folded': 'flamegraph.pl {} > profile.svg',
    'p.v1.speedscope.json': 'load {} at https://www.speedscope.app',
    'p.pb.gz': 'go tool pprof {}',
    'p.firefox.json': 'load {} at https://profiler.firefox.com',
    'p.self-profiling.json': None,
    'p.json': f'{BUILD}/sentry-profctl view {{}}',
    'p.txt': 'less {}',
    'p.html': f'{BUILD}/sentry-profctl view {{}}',
    'p.svg': 'xdg-open {}',
}
NAMES = {'p.folded': 'folded', 'p.v1.speedscope.json': 'speedscope',
         'p.pb.gz': 'pprof', 'p.firefox.json': 'firefox',
         'p.self-profiling.json': 'self-profiling', 'p.json': 'json'}


def names_in(directory):
    return sorted(p.name for p in directory.iterdir())


def next_lines(profd):
    return re.findall(rf'^{NEXT}(.*)$', profd.stderr, re.M)


def check_functions(totals, name):
    """Checks the functions of tests/targets/shares.c. The times are tested in
    test_convert.py, or compared with kept envelopes."""
    found = {function for _, stack in totals for function in stack}
    check({'busy_seventy', 'busy_thirty', 'sleeper'} <= found, f'{name}: {found}')


def test_every_format(box):
    target = box.target('shares')
    directory = box.make_dir('out')
    for n, (name, line) in enumerate(FILES.items()):
        path = directory / name
        profd = box.profile([target], output=path, work=0.3, table=n % 2 == 0)
        data = path.read_bytes()
        check(stat.S_IMODE(path.stat().st_mode) == 0o644, f'{name}: its mode')
        if name in NAMES:
            args = ['--threads'] if name == 'p.folded' else []
            check(not args or b';busy_seventy' in data, f'{data[:500]}')
            if not args:
                check_functions(formats.READERS[NAMES[name]](data), name)
        else:
            check(b'busy_seventy' in data if name in ('p.txt', 'p.svg') else
                  data.startswith(b'<!DOCTYPE html>') or
                  data.startswith(b'<!doctype html>'), f'{name}: {data[:100]}')
        if n % 2 != 0:
            check(profd.stdout == '' and next_lines(profd) == [], 'not quiet')
            continue
        check(f'\nthe profile is in {path}\n' in profd.stdout, profd.stdout)
        check(next_lines(profd) == [line.format(path)] if line else
              next_lines(profd) == [], profd.stderr)
    check(names_in(directory) == sorted(FILES), f'{names_in(directory)}')


def test_the_line_of_a_directory(box):
    """The printed command opens the profile."""
    profd = box.profile([box.target('shares')], table=True, work=0.2)
    line, = next_lines(profd)
    check(line == f'{BUILD}/sentry-profctl convert {profd.output} -o profile.html',
          line)
    directory = box.make_dir('typed')
    done = box.start(['sh', '-c', line], cwd=directory)
    check(done.wait() == 0 and names_in(directory) == ['profile.html'], line)
    # A shell must read a name with blanks and quotes as one word.
    odd = box.make_dir("it's an \"odd\" $name")
    profd = box.profile([box.target('shares')], output=odd, table=True, work=0.2)
    line, = next_lines(profd)
    for name in names_in(directory):
        (directory / name).unlink()
    done = box.start(['sh', '-c', line], cwd=directory)
    check(done.wait() == 0 and names_in(directory) == ['profile.html'], line)
    page = odd / 'p.html'
    profd = box.profile([box.target('shares')], output=page, table=True, work=0.2)
    line, = next_lines(profd)
    done = box.start(['sh', '-c', f'{line} --no-open'])
    check(done.wait() == 0 and done.stdout == f'{page}\n', f'{line}: {done.stdout}')
    # There is no line if there is nothing to view, and no line about the
    # directory if the output is a file.
    profd = box.profile([box.target('shares')], work=0.2)
    check(next_lines(profd) == [], profd.stderr)


def test_names_of_directories(box):
    """An existing directory, and a name without a suffix, are directories."""
    target = box.target('shares')
    directory = box.make_dir('out')
    (directory / 'p.html').mkdir()
    for name in ('p.html', 'html', 'run-1.2'):
        profd = box.profile([target], output=directory / name, work=0.2)
        check(len(profd.chunks) == 1, f'{name}: {names_in(directory)}')


def test_relative_name(box):
    directory = box.make_dir('out')
    box.profile([box.target('shares')], output='p.json', work=0.2,
                directory=directory, cwd=directory)
    check('p.json' in names_in(directory) and
          not any(n.startswith(('.p', 'p.json.')) for n in names_in(directory)),
          f'{names_in(directory)}')


def test_command(box):
    """The exit status is the command's, even if the file cannot be written."""
    path = box.make_dir('out') / 'p.json'
    profd = box.profd([], '--', PYTHON, '-c', WORKS + '\nraise SystemExit(7)',
                      output=path, table=True).finish(7)
    check(len(path.read_text().splitlines()) == 1, 'one process')
    check(f'the profile is in {path}' in profd.stderr, profd.stderr)
    check(next_lines(profd) == [f'{BUILD}/sentry-profctl view {path}'],
          profd.stderr)
    exes = executables(box, '/bin/false')
    profd = box.profd([], '--', PYTHON, '-c', WORKS + '\nraise SystemExit(7)',
                      output=path, exe=exes / 'sentry-profd').finish(7)
    check(f'{path} is not written: sentry-profctl ended with status 1' in
          profd.stderr, profd.stderr)


def test_several_processes(box):
    """Several processes are in one profile."""
    path = box.make_dir('out') / 'p.json'
    box.profile([box.target('shares'), box.target('shares')], output=path,
                work=0.3)
    check(len(path.read_text().splitlines()) == 2, 'two processes')
    check_functions(formats.of_json(path.read_bytes()), 'json')
    box.profd([], '--children', '--', 'sh', '-c', '"$0" -c "$1"; "$0" -c "$1"; :',
              PYTHON, WORKS, output=path).finish(0)
    check(len(path.read_text().splitlines()) >= 2, 'the children are missing')


def test_the_server_has_it_too(box):
    server = box.server()
    path = box.make_dir('out') / 'p.json'
    box.profile([box.target('shares')], '--dsn', server.dsn, output=path,
                env=server.env, work=0.3)
    check(formats.of_json(path.read_bytes()) == formats.of_chunks(server.chunks),
          'not what the server has')


def executables(box, converter):
    """Returns copies of the executables, with another program as
    sentry-profctl; None: without it."""
    exes = stranger.copy(box, stranger.EXECUTABLES)
    if converter:
        shutil.copy2(converter, exes / 'sentry-profctl')
        (exes / 'sentry-profctl').chmod(0o755)
    return exes


def check_kept(profd, path, why, content):
    """Checks that the file is unchanged, and that the envelopes are where the
    line says."""
    line, = re.findall(r'^sentry-profd: (.* is not written: .*)$', profd.stderr,
                       re.M)
    m = re.fullmatch(r'(\S+) is not written: (.*); the envelopes are in (\S+) '
                     r'\(try again: sentry-profctl (.*)\)', line)
    check(m and m[1] == str(path) and m[2] == why, line)
    kept, = [n for n in names_in(path.parent) if n != path.name]
    check(m[3] == str(path.parent / kept), f'{line} {kept}')
    check(stat.S_IMODE(os.stat(m[3]).st_mode) == 0o700, 'others may read them')
    check(path.read_text() == content, 'the file is another one')
    check(next_lines(profd) == [], profd.stderr)
    return m[4].split()


def test_a_conversion_that_fails(box):
    target = box.target('shares')
    for converter, why in (('/bin/false', 'sentry-profctl ended with status 1'),
                           ('/etc/os-release',
                            'sentry-profctl cannot be executed')):
        path = box.make_dir('out') / 'p.json'
        path.write_text('old')
        exes = executables(box, converter)
        profd = box.profile([target], output=path, work=0.3, status=1, table=True,
                            exe=exes / 'sentry-profd')
        args = check_kept(profd, path, why, 'old')
        check('\n1 envelope in ' in profd.stdout, profd.stdout)
        # The command in the line makes the file.
        profd.output = pathlib.Path(args[1])
        again = box.start([BUILD / 'sentry-profctl', *args])
        check(again.wait() == 0, again.stderr)
        check(formats.of_json(path.read_bytes()) ==
              formats.of_chunks(profd.chunks), 'not what was kept')


def converting(box, path, profd=None, **more):
    """Starts a run whose conversion has begun and does not end; returns its
    pid and its rights."""
    exes = executables(box, BUILD / 'targets/half_done')
    profd = box.profd([box.target('shares')], output=path,
                      exe=exes / 'sentry-profd', **more).wait_attached()
    profd.wait_looks()
    profd.signal(signal.SIGINT)
    m = wait_for(lambda: re.search(r'half done (\d+): (.*)\n', profd.stderr),
                 'the conversion')
    return profd, int(m[1]), m[2]


def check_rights(profd, pid, uid):
    """Checks that the conversion has no rights, and gets no signals of the
    terminal."""
    for field in ('CapEff', 'CapPrm', 'CapInh', 'CapAmb'):
        found = harness.proc_status(pid, field)
        check(int(found, 16) == 0, f'{field} is {found}')
    check(harness.proc_status(pid, 'NoNewPrivs') == '1', 'NoNewPrivs')
    check(harness.proc_status(pid, 'Uid').split() == [str(uid)] * 4, 'its user')
    check(int(harness.proc_status(pid, 'SigBlk'), 16) == 0, 'blocked signals')
    check(os.getpgid(pid) == pid, 'it is in the process group of the broker')
    check(os.readlink(f'/proc/{pid}/fd/0') == '/dev/null', 'its input')
    check(sorted(os.listdir(f'/proc/{pid}/fd'))[:3] == ['0', '1', '2'] and
          len(os.listdir(f'/proc/{pid}/fd')) == 4, 'descriptors of ours')
    check(os.getpriority(os.PRIO_PROCESS, pid) ==
          os.getpriority(os.PRIO_PROCESS, os.getpid()), 'its priority')


def test_interrupted_conversion(box):
    """An incomplete file never has its final name. A second signal ends the
    conversion."""
    path = box.make_dir('out') / 'p.html'
    path.write_text('old')
    profd, pid, may = converting(box, path)
    check(path.read_text() == 'old', 'half of the file is there')
    check_rights(profd, pid, os.geteuid())
    if os.geteuid() == 0:
        check(int(harness.proc_status(pid, 'CapBnd'), 16) == 0, 'CapBnd')
    # Landlock's version; an error if it is not among the kernel's security
    # modules.
    confined = harness.libc.syscall(SYS_LANDLOCK_CREATE_RULESET, None, 0, 1) > 0
    check(may == ('makes 0 0, reads 1' if confined else 'makes 1 1, reads 1'), may)
    profd.interrupt(status=1)
    check_kept(profd, path, 'a signal ended the conversion', 'old')
    check(not os.path.exists(f'/proc/{pid}'), 'it goes on')


def test_daemon_is_killed(box):
    """The conversion ends, too, and the file is unchanged."""
    path = box.make_dir('out') / 'p.html'
    path.write_text('old')
    profd, pid, _ = converting(box, path)
    profd.process.kill()
    profd.wait()
    wait_for(lambda: harness.state(pid) in ('Z', '', None), 'it has ended')
    check(path.read_text() == 'old', 'half of the file is there')
    kept, = [p for p in path.parent.iterdir() if p.is_dir()]
    check(len(list(kept.glob('*.envelope'))) == 1, 'the envelope is lost')


def test_nothing_to_convert(box):
    """Without chunks there is no file and nothing else: status 1 and a line.
    """
    directory = box.make_dir('out')
    profd = box.profd([], '--rate', '1', '--', 'true',
                      output=directory / 'p.html').finish(0)
    check('p.html is not written: there is no profile' in profd.stderr,
          profd.stderr)
    gone = box.start(['true'])
    gone.wait()
    box.profd([gone], output=directory / 'p.html').finish(1)
    check(names_in(directory) == [], f'{names_in(directory)}')


def test_what_cannot_be_begun(box):
    """If the file cannot be made, nothing is profiled, no command runs, and
    nothing is left behind."""
    directory = box.make_dir('out')
    made = directory / 'made'
    for exe, name, line in (
            (executables(box, None), 'p.html', 'sentry-profctl cannot be executed, '
             'which --output FILE needs: No such file or directory'),
            (BUILD, 'no/p.html', f'cannot write {directory}/no/p.html: '
             'No such file or directory'),
            (BUILD, 'x' * 240 + '.html', 'File name too long')):
        profd = box.profd([], '--', 'touch', made, output=directory / name,
                          exe=exe / 'sentry-profd').finish(125)
        check(line in profd.stderr, profd.stderr)
        check(names_in(directory) == [], f'{names_in(directory)}')


def test_usage(box):
    config = box.make_dir('config') / 'config'
    config.write_text('[target "x"]\ncomm = x\n')
    config.chmod(0o644)
    for args, line in (
            (['--config', config], "--output: a file takes --pid, --name or a "
             "command; without them it has to be a directory: 'p.html'"),
            (['--pid', '1', '--duration', '1', '--transaction', 'x'],
             "--output: with --transaction it has to be a directory: 'p.html'")):
        profd = box.profd([], *args, output='p.html')
        profd.finish(2)
        check(line in profd.stderr, profd.stderr)
    for name in ('p.png', 'my.profile', box.dir / 'p.PDF'):
        profd = box.profd([], '--pid', '1', output=name).finish(2)
        check('--output: no format has this ending' in profd.stderr and
              ' .folded .speedscope.json ' in profd.stderr, profd.stderr)


def test_as_an_ordinary_user(box):
    stranger.need_ptrace()
    target = stranger.target(box, 'shares')
    directory = stranger.make_dir(box, 'out')
    path = directory / 'p.json'
    exes = stranger.copy(box, EXECUTABLES)
    box.profile([target], output=path, work=0.3, exe=exes / 'sentry-profd',
                directory=stranger.make_dir(box, 'profd'), **stranger.options())
    uid = stranger.UID if os.geteuid() == 0 else os.getuid()
    check(path.stat().st_uid == uid, f'{path.stat()}')
    check_functions(formats.of_json(path.read_bytes()), 'json')
    check(names_in(directory) == ['p.json'], f'{names_in(directory)}')


def test_root_in_a_directory_of_a_user(box):
    """Root in a directory of another user: the file belongs to the caller; the
    command may run as another user."""
    stranger.need_root()
    directory = stranger.make_dir(box, 'out')
    path = directory / 'p.json'
    box.profile([box.target('shares')], output=path, work=0.3)
    check(path.stat().st_uid == 0, f'{path.stat()}')
    check_functions(formats.of_json(path.read_bytes()), 'json')
    box.profd([], '--user', 'daemon', '--', PYTHON, '-c', WORKS,
              output=path).finish(0)
    check(path.stat().st_uid == 0, f'{path.stat()}')
    check(names_in(directory) == ['p.json'], f'{names_in(directory)}')


def test_interrupt_at_a_terminal(box):
    """^C ends profiling, and the file is complete when the shell has the
    terminal again."""
    directory = box.make_dir('out')
    target = box.target('shares')
    with terminal(box) as t:
        t.type(f'{BUILD}/sentry-profd --spool none --pid {target.pid} '
               f'-o {directory}/p.html; echo "status $?"\n')
        wait_for(lambda: harness.tracer(target.pid), 'it is profiled')
        harness.wait_work(target.pid, 0.3)
        t.type('\x03')
        t.wait_text(r'status 0\r')
        check(f'{NEXT}{BUILD}/sentry-profctl view {directory}/p.html' in t.text,
              t.text)
    check(names_in(directory) == ['p.html'], f'{names_in(directory)}')


def test_stopped_at_a_terminal(box):
    """^Z during the conversion returns the terminal to the shell, and ^C after
    fg ends the conversion."""
    directory = box.make_dir('out')
    exes = executables(box, BUILD / 'targets/half_done')
    with terminal(box) as t:
        t.type(f'{exes}/sentry-profd --spool none --quiet -o {directory}/p.html '
               f'-- {PYTHON} -c "{WORKS}"; echo "status $?"\n')
        pid = int(t.wait_text(r'half done (\d+)')[1])
        parent = int(re.search(r'PPid:\s+(\d+)', harness.proc_text(
            pid, 'status'))[1])
        t.type('\x1a')
        t.wait_text('Stopped')
        t.type('fg\n')
        wait_for(lambda: os.tcgetpgrp(t.fd) == parent and
                 harness.state(parent) != 'T', 'it goes on')
        t.type('\x03')
        t.wait_text('a signal ended the conversion')
        t.type('echo "status $?"\n')
        t.wait_text(r'status 0\r')


# sentry-profctl view

def view(box, *args, status=0, cwd=None, **variables):
    """Runs sentry-profctl view to its end, with these variables and no others
    that name a browser."""
    env = harness.environment(**variables)
    for name in ('BROWSER', 'DISPLAY', 'WAYLAND_DISPLAY'):
        if name not in variables:
            env.pop(name, None)
    done = box.start([BUILD / 'sentry-profctl', 'view', *args], env=env, cwd=cwd)
    check(done.wait() == status, f'{done.stdout}{done.stderr}')
    return done


def browser(box, name='browser'):
    """Makes a directory with a browser, which records what it is to open."""
    directory = box.make_dir('bin')
    program = directory / name
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >>{directory}/opened\n'
                       'exit 5\n')
    program.chmod(0o755)
    return directory


def test_view(box):
    """Only the user may read the page, and its name cannot be guessed."""
    profd = box.profile([box.target('shares')], work=0.3)
    runtime = box.make_dir('runtime')
    bin_dir = browser(box)
    program = bin_dir / 'browser'
    pages = []
    for args in ([profd.output], list(profd.output.iterdir())):
        # A browser that does not exist is skipped. The exit status is that of
        # the browser.
        done = view(box, *args, status=5, BROWSER=f'/no/such::{program}',
                    XDG_RUNTIME_DIR=str(runtime))
        page, = done.stdout.splitlines()
        check(re.fullmatch(rf'{runtime}/sentry-profile-\w{{6}}\.html', page), page)
        check(stat.S_IMODE(os.stat(page).st_mode) == 0o600, f'{os.stat(page)}')
        with open(page, encoding='utf-8') as file:
            check('<html' in file.read(), 'not a page')
        pages.append(page)
    check((bin_dir / 'opened').read_text().splitlines() == pages, f'{pages}')
    # An existing page is opened in place.
    page = box.make_dir('out') / 'p.html'
    shutil.copy(pages[0], page)
    done = view(box, page.name, status=5, cwd=page.parent, BROWSER=str(program))
    check(done.stdout == f'{page}\n', done.stdout)
    check((bin_dir / 'opened').read_text().splitlines() == [*pages, str(page)],
          'not opened')
    check(len(names_in(runtime)) == 2, f'{names_in(runtime)}')


def test_view_without_a_browser(box):
    """Without a browser the path is printed. xdg-open is used on a desktop
    only."""
    profd = box.profile([box.target('shares')], work=0.3)
    runtime = box.make_dir('runtime')
    bin_dir = browser(box, 'xdg-open')
    variables = {'XDG_RUNTIME_DIR': str(runtime), 'PATH': str(bin_dir)}
    for args, more in (([], {}), (['--no-open'], {'DISPLAY': ':0'}),
                       (['--no-open'], {'BROWSER': 'xdg-open'})):
        done = view(box, *args, profd.output, **variables, **more)
        check(os.path.exists(done.stdout.rstrip('\n')), done.stdout)
    check(not (bin_dir / 'opened').exists(), 'it was opened')
    for more in ({'DISPLAY': ':0'}, {'WAYLAND_DISPLAY': 'wayland-0'}):
        view(box, profd.output, status=5, **variables, **more)
    check(len((bin_dir / 'opened').read_text().splitlines()) == 2, 'not opened')
    # Without a runtime directory the temporary one is used.
    temporary = box.make_dir('tmp')
    done = view(box, profd.output, TMPDIR=str(temporary), XDG_RUNTIME_DIR='/no/such')
    check(done.stdout.startswith(f'{temporary}/'), done.stdout)


def test_view_of_nothing(box):
    """Nothing is left behind, and nothing is opened."""
    runtime = box.make_dir('runtime')
    broken = box.make_dir('in') / 'broken.json'
    broken.write_text('{}\n')
    program = browser(box) / 'browser'
    for args, status, line in (([broken], 1, f'no profile chunk in {broken}'),
                               (['/no/such'], 1, '/no/such'),
                               (['/no/such.html'], 1, '/no/such.html'),
                               ([], 2, 'view: no input'),
                               (['--opne', 'x'], 2, '--opne')):
        done = view(box, *args, status=status, BROWSER=str(program),
                    XDG_RUNTIME_DIR=str(runtime))
        check(line in done.stderr and done.stdout == '', done.stderr)
    check(names_in(runtime) == [], f'{names_in(runtime)}')
    check(not (program.parent / 'opened').exists(), 'it was opened')


if __name__ == '__main__':
    harness.main(globals())
