#!/usr/bin/env python3
"""The properties that a section matches may change while a process runs: its
name, command line, control group, user, and the pid file.
"""

import pathlib
import secrets
import subprocess
import time

import harness
from harness import BUILD, Skip, check, in_turns, stretch, threads, tracer
from service import Service, tell
from test_discovery import NO_CONNECTOR, is_told, need_root


def test_other_name(box):
    """A process changes its name later, by prctl(2)."""
    service = Service(box, {'web': {'exe': None, 'comm': 'at-your-service'}})
    told = is_told(service)
    program = box.start([BUILD / 'targets/prefork'], stdin=subprocess.PIPE)
    program.wait_line('ready.*')
    tell(program, 'name at-your-service')
    service.wait_profiled(program.pid)
    check(told or program.running(), '')
    tell(program, 'name another')
    service.wait_left(program.pid)
    service.stop()


def test_the_leader_exits(box):
    """/proc has no program and no command line of a process whose main thread has exited."""
    need_root()
    service = Service(box, {'web': {'exe': BUILD / 'targets/cap_threads'}, 'job': {}},
                      wrapper=NO_CONNECTOR)
    program = box.start([BUILD / 'targets/cap_threads'], stdin=subprocess.PIPE)
    program.wait_line('ready.*')
    service.wait_profiled(program.pid)
    tell(program, 'leave')
    harness.wait_for(lambda: program.stdout.count('ready') == 2, 'its other thread')
    # Each process is found by a later scan than the one before.
    for _ in range(3):
        service.wait_profiled(service.start('job').pid)
    living = [t for t in threads(program.pid) if t != program.pid]
    check(living and all(tracer(t) for t in living), 'it is not profiled any more')
    service.stop()


def test_pid_file(box):
    path = box.make_dir('pid') / 'web.pid'
    service = Service(box, {'web': {'pid_file': path}})
    one, two = service.start('web'), service.start('web')
    path.write_text(f'{two.pid}\n')
    service.wait_profiled(two.pid)
    check(tracer(one.pid) == 0, 'it is not the one of the pid file')


def test_pid_file_of_another(box):
    """The pid file names another process: the daemon detaches from the first
    one. A file without a number changes nothing, because the process's end may
    take a while."""
    path = box.make_dir('pid') / 'web.pid'
    service = Service(box, {'web': {'pid_file': path}})
    one, two, three = (service.start('web') for _ in range(3))
    path.write_text(f'{one.pid}\n')
    service.wait_profiled(one.pid)
    path.unlink()
    service.profd.wait_chunks(3)
    check(service.is_profiled(one.pid), 'it is left before its end')
    for new in (two, three):
        path.write_text(f'{new.pid}\n')
        service.wait_profiled(new.pid)
    # The file had a number at all times.
    service.wait_left(two.pid)


def test_command_line(box):
    """The command line is in the process's memory, so a helper reads it."""
    service = Service(box, {'web': {'cmdline': '* --serve *'}})
    exe = service.exe['web']
    no = box.start([exe, '--stop', 'x'], stdin=subprocess.PIPE)
    yes = box.start([exe, '--serve', 'x'], stdin=subprocess.PIPE)
    service.wait_profiled(yes.pid)
    check(tracer(no.pid) == 0, 'its command line is another one')


def test_another_command_line(box):
    """Servers show their state in the command line. No event reports that, but
    the change is seen sooner than by the scan of /proc once a minute."""
    service = Service(box, {'web': {'cmdline': 'at your service*'}, 'job': {}})
    exe = service.exe['web']

    def turn():
        program = box.start([exe, 'x' * 20], stdin=subprocess.PIPE)
        program.wait_line('ready.*')
        # The process has been checked by then.
        service.wait_profiled(service.start('job').pid)
        began = time.monotonic()
        tell(program, 'title at your service')
        program.wait_line('titled')
        service.wait_profiled(program.pid)
        took = time.monotonic() - began
        return [] if took < 5 * stretch() else [f'{took:.1f} s']
    in_turns(turn)
    # A process with another program than the section's is not matched,
    # whatever it calls itself.
    service.reload({'web': {'cmdline': 'at your service*', 'exe': exe}})
    stranger = box.start([BUILD / 'targets/prefork', 'x' * 20],
                         stdin=subprocess.PIPE)
    tell(stranger, 'title at your service')
    stranger.wait_line('titled')
    later = service.start('web')
    tell(later, 'title at your service')
    service.wait_profiled(later.pid)
    check(tracer(stranger.pid) == 0, 'it is another program')


def test_another_control_group(box):
    """A running process is moved to the control group of a unit or a
    container."""
    need_root()
    top = pathlib.Path('/sys/fs/cgroup')
    # systemd's own hierarchy if there is one, else the unified one.
    top = next((d for d in (top / 'systemd', top, top / 'unified')
                if (d / 'cgroup.procs').exists()), None)
    container = secrets.token_hex(32)
    unit = f'docker-{container}.scope'
    programs = [box.start(['sleep', 1000])]
    try:
        (top / unit).mkdir()
        (top / unit / 'cgroup.procs').write_text(f'{programs[0].pid}\n')
    except (OSError, TypeError) as e:
        raise Skip(f'a control group: {e}') from None
    service = Service(box, {'web': {}, 'job': {}})

    def turn():
        programs.append(service.start('web'))
        service.wait_profiled(service.start('job').pid)
        began = time.monotonic()
        (top / unit / 'cgroup.procs').write_text(f'{programs[-1].pid}\n')
        service.wait_profiled(programs[-1].pid)
        took = time.monotonic() - began
        return [] if took < 5 * stretch() else [f'{took:.1f} s']
    try:
        for rule in ({'unit': unit}, {'cgroup': f'*/docker-*{container[-6:]}.*'},
                     {'container': container[:12]}):
            service.reload({'web': rule, 'job': {}})
            in_turns(turn)
    finally:
        for program in programs:
            program.end()
        (top / unit).rmdir()


SETUID = """
import os, sys
print('ready', flush=True)
sys.stdin.readline()
os.setuid(65534)
print('another', flush=True)
sys.stdin.readline()
"""


def test_another_user(box):
    """The user changes, as in the workers of a server that root starts."""
    need_root()
    service = Service(box, {'web': {}, 'job': {}})
    service.wait_profiled(another_user(box, service))


def test_another_user_without_a_word(box):
    """If the kernel does not report it, the next scan of /proc sees it,
    without waiting for the full scan a minute later."""
    need_root()
    service = Service(box, {'web': {}, 'job': {}}, wrapper=NO_CONNECTOR)
    pid = another_user(box, service)
    # Each process is found by a later scan than the one before.
    for _ in range(3):
        service.wait_profiled(service.start('job').pid)
    check(f'process {pid} matches [target ' in service.profd.stderr,
          'it has not been seen')


def another_user(box, service):
    """Returns the pid of a process that now belongs to the section."""
    service.reload({'web': {'exe': None, 'user': 65534,
                            'cmdline': f'*{service.dir}*'}, 'job': {}})
    program = box.start(['/usr/bin/python3', '-c', SETUID, service.dir],
                        stdin=subprocess.PIPE)
    program.wait_line('ready')
    service.wait_profiled(service.start('job').pid)
    check(tracer(program.pid) == 0, "it is root's yet")
    tell(program, '')
    program.wait_line('another')
    return program.pid


if __name__ == '__main__':
    harness.main(globals())
