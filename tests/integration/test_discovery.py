#!/usr/bin/env python3
"""The daemon finds the processes that its configuration matches, and no
others: at its start, and when a process starts, forks, executes another
program, or ends.

Runs alone: it sets the number of the next process, and measures how soon a
process is found.
"""

import os
import re
import resource
import shutil
import signal
import subprocess
import time

import control
import harness
import stranger
from harness import (BUILD, Skip, check, descriptors, exe_name, in_turns,
                     state, stretch, tracer, wait_for)
from service import Service, check_chunks, fork, tell
from test_control import section

# In a network namespace of its own the daemon receives nothing from the proc
# connector.
NO_CONNECTOR = ('unshare', '--net')


def need_root():
    if os.geteuid() != 0:
        raise Skip('only root may take its namespaces away')


def is_told(service):
    """Returns true if the kernel reports new processes to the daemon."""
    def said():
        return re.search('(reports|does not report) new processes',
                         service.profd.stderr)
    return wait_for(said, 'it says so').group(1) == 'reports'


def test_a_failed_start_unsubscribes(box):
    """Before Linux 6.6 the kernel counts a listener until it unsubscribes, and makes an event of
    each fork and exec meanwhile, until the next boot."""
    need_root()
    if not shutil.which('strace'):
        raise Skip('there is no strace')
    sent = box.dir / 'sent'
    path = box.make_dir('etc') / 'profd.conf'
    path.write_text(section('web', '/nonexistent'))
    path.chmod(0o600)
    profd = box.profd([], '--config', path, '--socket', '/proc/nonexistent',
                      wrapper=('strace', '-qq', '-e', 'trace=sendto', '-o', sent))
    profd.finish(status=1)
    operations = re.findall(r'NLMSG_DONE.*\\x0(\d)\\x00\\x00\\x00"', sent.read_text())
    if not operations:
        raise Skip('the kernel has no proc connector for us')
    check(operations == ['1', '2'], sent.read_text())


def live(box, service):
    """Finds processes that existed before and later ones; forks; ends."""
    first = service.start('web')
    service.wait_profiled(first.pid)
    worker = fork(first)
    service.wait_profiled(worker)
    stranger = box.start([BUILD / 'targets/prefork'],
                         stdin=subprocess.PIPE)
    stranger.wait_line('ready.*')
    second = service.start('web')
    service.wait_profiled(second.pid)
    check(tracer(stranger.pid) == 0, 'a process that matches nothing is traced')
    service.profd.wait_chunks(3)
    first.end()
    # The worker is a zombie until the test takes its status.
    wait_for(lambda: state(worker) in ('Z', ''), 'the worker ends')
    third = service.start('web')
    service.wait_profiled(third.pid, second.pid)
    service.stop()
    service.wait_left(second.pid, third.pid)
    check_chunks(service.profd, 'web@1', 4)
    check(not service.profd.stats['missed'].get('no_capture'),
          f'missed: {service.profd.stats["missed"]}')


def test_told_by_the_kernel(box):
    service = Service(box, {'web': {}})
    if not is_told(service):
        raise Skip('the kernel has no proc connector for us')
    live(box, service)


def test_by_reading_proc(box):
    need_root()
    service = Service(box, {'web': {}}, wrapper=NO_CONNECTOR)
    check(not is_told(service), 'there is a connector in there')
    live(box, service)


def test_within_200_ms(box):
    service = Service(box, {'web': {}})
    if not is_told(service):
        raise Skip('the kernel has no proc connector for us')
    # The unwind process and its descriptors exist by then.
    service.wait_profiled(service.start('web').pid)

    def turn():
        program = service.start('web')
        found = []
        for pid in (program.pid, None):
            pid = pid or fork(program)
            began = time.monotonic()
            service.wait_profiled(pid)
            took = time.monotonic() - began
            if took > 0.2 * stretch():
                found.append(f'{took:.3f} s')
        return found
    in_turns(turn)


def test_what_was_there_before(box):
    service = Service(box, {'web': {}})
    is_told(service)
    service.stop()
    program = service.start('web')
    again = box.profd([], '--config', service.path, '--socket',
                      service.dir / 'other')
    service.profd = again
    service.wait_profiled(program.pid)


def test_a_child_that_it_did_not_fork(box):
    """After "server & exec sentry-profd", as in the script of a container, the server is a child
    of sentry-profd, as are all orphans if that is process 1."""
    exe = stranger.copy(box, ['targets/unw_o2']) / 'unw_o2'
    path = box.make_dir('etc') / 'profd.conf'
    path.write_text(section('server', exe, 'autostart = yes'))
    path.chmod(0o600)
    profd = box.profd([], '--config', path, '--socket', box.dir / 'socket',
                      wrapper=('sh', '-c', '"$0" spin & exec "$@"', exe))

    def servers():
        return [p for p in harness.children(profd.pid) if exe_name(p) == 'unw_o2']
    server, = wait_for(servers, 'the server')
    wait_for(lambda: tracer(server), 'it is profiled')
    harness.wait_work(server, 1)
    used_s = harness.cpu_seconds(server)
    os.kill(server, signal.SIGKILL)
    wait_for(lambda: not servers() and not state(server), 'its end')
    profd.signal(signal.SIGTERM)
    profd.finish()
    check(profd.stats['cpu_seconds']['broker'] < used_s,
          f'more than the server had: {profd.stats["cpu_seconds"]}')


def test_min_age(box):
    """A younger process is not profiled; one that ends before is never looked
    at."""
    service = Service(box, {'web': {'min_age_seconds': 3600}})
    is_told(service)
    program = service.start('web')
    other = Service(box, {'web': {'min_age_seconds': 0}})
    later = other.start('web')
    other.wait_profiled(later.pid)
    check(tracer(program.pid) == 0, 'it is traced before its time')
    service.reload({'web': {}})
    service.wait_profiled(program.pid)


def test_exec(box):
    """Another program belongs to another section, or to none."""
    service = Service(box, {'web': {}, 'job': {}, 'rest': {}})
    program = service.start('web')
    service.wait_profiled(program.pid)
    tell(program, f'exec {service.exe["job"]}')
    service.profd.wait_chunks(2)
    wait_for(lambda: any(c['release'] == 'job@1'
                         for c in service.profd.chunks),
             'a chunk of the other section')
    tell(program, f'exec {BUILD}/targets/prefork')
    service.wait_left(program.pid)
    tell(program, f'exec {service.exe["web"]}')
    service.wait_profiled(program.pid)
    # A program of the same section: profiling goes on.
    line = f'attached to process {program.pid}'
    wait_for(lambda: service.profd.stderr.count(line) == 3, f'3 times {line}')
    tell(program, f'exec {service.exe["web"]}')
    service.profd.wait_chunks(2)
    check(service.profd.stderr.count(line) == 3,
          'it was attached to anew')
    service.stop()


def test_detached_over_an_exec(box):
    """A detached process is left alone whatever program it executes."""
    service = Service(box, {'web': {}, 'job': {}})
    ctl = control.Control(box, service.dir / 'socket')
    program = service.start('web')
    service.wait_profiled(program.pid)
    ctl.run('detach', program.pid)
    service.wait_left(program.pid)
    tell(program, f'exec {service.exe["job"]}')
    wait_for(lambda: program.stdout.count('ready') > 1, 'the new program')
    # By then it has been compared.
    service.wait_profiled(service.start('job').pid)
    check(tracer(program.pid) == 0, 'it is profiled again')
    # It belongs to the other section now.
    ctl.run('attach', program.pid)
    service.wait_profiled(program.pid)
    check(ctl.target(program.pid)['name'] == 'job', f'{ctl.target(program.pid)}')
    service.stop()


def test_detached_over_a_reload(box):
    """Whether its section gets another name, is removed, or comes back."""
    service = Service(box, {'web': {}, 'job': {}})
    service.add_exe('new')
    ctl = control.Control(box, service.dir / 'socket')
    program = service.start('web')
    service.wait_profiled(program.pid)
    ctl.run('detach', program.pid)
    service.wait_left(program.pid)
    for sections, name in (({'new': {'exe': service.exe['web']}}, 'new'), ({}, 'pid'),
                           ({'web': {}}, 'pid')):
        service.reload({**sections, 'job': {}})
        # By then all processes have been compared.
        other = service.start('job')
        service.wait_profiled(other.pid)
        wait_for(lambda n=name: (ctl.target(program.pid) or {}).get('name') == n, name)
        check(ctl.target(program.pid)['state'] == 'left_out', f'{ctl.target(program.pid)}')
        check(tracer(program.pid) == 0, 'it is profiled again')
    ctl.run('attach', program.pid)
    service.wait_profiled(program.pid)
    service.stop()


def test_attached_over_an_exec(box):
    """Another section, or none, matches the process then; an operator has attached it."""
    off = {'profile_session_sample_rate': 0}
    service = Service(box, {'web': off, 'job': off})
    ctl = control.Control(box, service.dir / 'socket')
    program = service.start('web')
    service.wait_known(program.pid)
    ctl.run('attach', program.pid)
    for exe, name in ((service.exe['job'], 'job'), (BUILD / 'targets/prefork', 'pid')):
        tell(program, f'exec {exe}')
        wait_for(lambda n=name: ctl.target(program.pid)['name'] == n, name)
        ctl.wait_state(program.pid, 'profiling')
        service.wait_profiled(program.pid)
    service.stop()
    check_chunks(service.profd, 'job@1')


def test_variables(box):
    """A section chooses by the environment of the exec. SENTRY_PROFILER=off wins
    over every section, until an exec without it; a user who names the process
    wins over it. No variable is shown."""
    service = Service(box, {'web': {'env TEAM': 'pay*', 'env TIER': '?'},
                            'rest': {}})
    ctl = control.Control(box, service.dir / 'socket')

    def start(**variables):
        return service.start('web', env=harness.environment(**variables))
    ours, secret = {'TEAM': 'payments', 'TIER': '1'}, 'secret-of-the-test'
    chosen = start(**ours)
    other = start(**ours | {'TEAM': secret})
    off = start(**ours, SENTRY_PROFILER='off')
    service.wait_profiled(chosen.pid)

    def doctor_of(program):
        return subprocess.run(
            [BUILD / 'sentry-profctl', 'doctor', '--socket', ctl.path,
             str(program.pid)], capture_output=True, text=True,
            check=False).stdout
    check('SENTRY_PROFILER=off in its' in doctor_of(off), doctor_of(off))
    doctor = doctor_of(other)
    check('[target "web"] does not match it: its environment does not match '
          'env NAME' in doctor, doctor)
    # The two have been compared with the sections before the last one.
    last = start(**ours)
    service.wait_profiled(last.pid)
    check(tracer(other.pid) == tracer(off.pid) == 0, 'a wrong one is profiled')
    line = (f'process {off.pid} has SENTRY_PROFILER=off in its environment: it '
            'is profiled because')
    ctl.run('attach', off.pid)
    service.wait_profiled(off.pid)
    wait_for(lambda: line in service.profd.stderr, line)
    ctl.run('detach', off.pid)
    service.wait_left(off.pid)
    # The environment of an exec.
    for word in 'off', 'on':
        script = box.dir / word
        script.write_text(f'#!/bin/sh\nexport SENTRY_PROFILER={word}\n'
                          f'exec {service.exe["web"]}\n')
        script.chmod(0o755)
        tell(chosen, f'exec {script}')
        wait_for(lambda: chosen.stdout.count('ready') > (word == 'on') + 1,
                 'the new program')
        service.wait_profiled(start(**ours).pid)
        if word == 'off':
            # Capture may detach some time after the comparison.
            service.wait_left(chosen.pid)
    service.wait_profiled(chosen.pid)
    service.stop()
    check(secret not in service.profd.stderr + doctor, 'a variable is shown')


def test_long_texts(box):
    """A command line is compared by its first 4,096 bytes, an environment by its first 4 MiB
    (LIMITS in sentry-profd.conf(5))."""
    service = Service(box, {'line': {'cmdline': '*needle*'}, 'variable': {'env TEAM': 'pay'}})

    def start(name, *args, env=None):
        program = box.start([service.exe[name], *args], stdin=subprocess.PIPE, env=env)
        program.wait_line('ready.*')
        return program

    def with_size(size):
        """Of the environment before TEAM; a variable has at most 128 KiB."""
        n, rest = divmod(size, 100000)
        return harness.environment(**{f'V{i}': 'x' * 100000 for i in range(n)},
                                   REST='x' * rest, TEAM='pay')
    far = [start('line', 'x' * 4096 + 'needle')]
    near = [start('line', 'x' * 3000 + 'needle')]
    _, most = resource.getrlimit(resource.RLIMIT_STACK)
    if most == resource.RLIM_INFINITY:
        # The kernel limits what an exec takes by the size of the stack.
        before = resource.getrlimit(resource.RLIMIT_STACK)
        resource.setrlimit(resource.RLIMIT_STACK, (most, most))
        far.append(start('variable', env=with_size(4 << 20)))
        near.append(start('variable', env=with_size(4000000)))
        resource.setrlimit(resource.RLIMIT_STACK, before)
    service.wait_profiled(*(program.pid for program in near))
    # The others were compared before the last one of their kind.
    check(not any(tracer(program.pid) for program in far), 'what is beyond the limit counts')
    service.stop()


def test_unknown_keys(box):
    """A section with an unknown key is off, at the start; at a reload it stays as
    it was. The other sections and keys apply in both cases."""
    service = Service(box, {'web': {'exclude': '/x'}, 'job': {}})
    ctl = control.Control(box, service.dir / 'socket')

    def sections():
        return {s['name']: (s['off'], s['defect'])
                for s in ctl.status()['daemon']['sections']}
    web, job = service.start('web'), service.start('job')
    service.wait_profiled(job.pid)
    found = ctl.wait_state(web.pid, 'left_out')
    check(found['last_error'] == 'unknown key exclude' and not tracer(web.pid),
          f'{found}')
    check(sections() == {'web': (True, 'unknown key exclude'),
                         'job': (False, None)}, f'{sections()}')
    check('[target "web"] is off: unknown key exclude' in
          ctl.run('status').stdout, 'the table')
    line = '[target "web"] is off, and none of its processes is profiled'
    check(service.profd.stderr.count(line) == 1, service.profd.stderr)
    # The key is removed; nothing else changes.
    service.reload({'web': {}, 'job': {}})
    service.wait_profiled(web.pid)
    line = f'attached to process {job.pid}'
    check(service.profd.stderr.count(line) == 1, 'the other was disturbed')
    # The sections that run keep their text.
    service.add_exe('new')
    service.reload({'web': {'rate': '7', 'rate_hz': '7'},
                    'job': {'rate_hz': '11'}, 'new': {}})
    new = service.start('new')
    service.wait_profiled(web.pid, job.pid, new.pid)
    check(sections()['web'] == (False, 'unknown key rate'), f'{sections()}')
    wait_for(lambda: ctl.target(job.pid)['rate_hz'] == 11, 'the new rate')
    check(ctl.target(web.pid)['rate_hz'] == 101 and service.profd.stderr.count(
        f'attached to process {web.pid}') == 1, f'{ctl.target(web.pid)}')
    check('[target "web"] keeps its former settings' in service.profd.stderr,
          service.profd.stderr)
    service.stop()


def reuse_pid(service, pid):
    """Starts a process of the section web that has this pid."""
    for _ in range(1000):
        with open('/proc/sys/kernel/ns_last_pid', 'w') as file:
            file.write(str(pid - 1))
        program = service.start('web')
        if program.pid == pid:
            return program
        program.end()
    raise Skip('the pid was taken by somebody else')


def test_pid_reuse(box):
    """The same pid, but another process: another start time, another profiler.
    """
    need_root()
    service = Service(box, {'web': {}})
    first = service.start('web')
    service.profd.wait_chunks(1)
    first.end()
    second = reuse_pid(service, first.pid)
    service.wait_profiled(second.pid)
    service.profd.wait_chunks(2)
    service.stop()
    ids = {c['profiler_id'] for c in service.profd.chunks}
    check(len(ids) >= 2, f'{ids}')


def end_unattached(service, first):
    """Ends a process while capture is stopped; returns its pid. None: capture
    was replaced meanwhile, and the new one may have attached to the process.
    """
    def replaced():
        return service.profd.stderr.count('shows no heartbeat')
    service.wait_profiled(first.pid)
    before = replaced()
    capture, = service.profd.helpers()['capture']
    try:
        os.kill(capture, signal.SIGSTOP)
        try:
            brief = service.start('web')
            service.wait_known(brief.pid)
            brief.end()
        finally:
            os.kill(capture, signal.SIGCONT)
    except ProcessLookupError:
        return None
    line = f'process {brief.pid} has ended before it could be attached'
    wait_for(lambda: line in service.profd.stderr or replaced() > before, line)
    return brief.pid if replaced() == before else None


def test_gone_at_once(box):
    """A process that ends before capture attaches is not an error: it was a
    process of a section."""
    service = Service(box, {'web': {}})
    if not is_told(service):
        raise Skip('it is found after a second, and capture replaced by then')
    first = service.start('web')
    pid = wait_for(lambda: end_unattached(service, first), 'one that ends')
    told = [l for l in service.profd.stderr.splitlines()
            if str(pid) in l and 'debug:' not in l]
    check(told == [], f'{told}')


def test_max_instances(box):
    service = Service(box, {'web': {'max_instances': 2}})
    programs = [service.start('web') for _ in range(4)]
    for p in programs:
        service.wait_known(p.pid)

    def profiled():
        return [p for p in programs if service.is_profiled(p.pid)]
    wait_for(lambda: len(profiled()) == 2, 'two are profiled')
    service.profd.wait_chunks(4)
    check(len(profiled()) == 2, f'{len(profiled())} are profiled')
    gone = profiled()[0]
    programs.remove(gone)
    gone.end()
    wait_for(lambda: len(profiled()) == 2, 'another one takes the place')


def test_sampled_by_session(box):
    """Each process has one sampling decision, which stays the same when the
    daemon restarts, and is monotone in the rate."""
    rates = {'none': 0.0, 'half': 0.5, 'all': 1.0}
    sections = {n: {'profile_session_sample_rate': r}
                for n, r in rates.items()}
    service = Service(box, sections)
    programs = {n: [service.start(n) for _ in range(12)] for n in rates}

    def decided():
        """Returns the profiled processes, when all are known."""
        for p in sum(programs.values(), []):
            service.wait_known(p.pid)
        sampled = {p.pid: 'excludes it' not in re.search(
            rf'process {p.pid} matches \[target .*',
            service.profd.stderr).group() for p in sum(programs.values(), [])}
        for pid, yes in sampled.items():
            if yes:
                service.wait_profiled(pid)
            else:
                check(tracer(pid) == 0, 'one that is not sampled is traced')
        return {pid for pid, yes in sampled.items() if yes}
    first = decided()
    of = {n: [p.pid for p in programs[n]] for n in rates}
    check(not first & set(of['none']), 'sampled at 0')
    check(set(of['all']) <= first, 'not sampled at 1')
    # By chance, all are the same once in two thousand runs.
    check(0 < len(first & set(of['half'])) < 12,
          f'{len(first & set(of["half"]))} of 12 at 0.5')
    service.stop()
    service.profd = box.profd([], '--config', service.path, '--socket',
                              service.dir / 'other', '--debug')
    check(decided() == first, 'other decisions by the next daemon')


def test_reload(box):
    """Unchanged sections go on; the others begin anew, are added or end."""
    service = Service(box, {'same': {}, 'other': {}, 'gone': {}})
    service.add_exe('new')
    of = {n: service.start(n) for n in ('same', 'other', 'gone', 'new')}
    service.wait_profiled(*(of[n].pid for n in ('same', 'other', 'gone')))
    service.profd.wait_chunks(3)
    service.reload({'new': {}, 'other': {'release': 'other@2'}, 'same': {}})
    service.wait_left(of['gone'].pid)
    service.wait_profiled(*(of[n].pid for n in ('same', 'other', 'new')))
    wait_for(lambda: {'other@2', 'new@1'} <=
             {c['release'] for c in service.profd.chunks}, 'their chunks')
    # A configuration with a fault changes nothing.
    service.reload({'new': {'rate_hz': 'many'}}, 'the old configuration stays in use')
    service.profd.wait_chunks(3)
    check(all(service.is_profiled(of[n].pid)
              for n in ('same', 'other', 'new')), 'one was stopped')
    service.stop()
    ids = {}
    for c in service.profd.chunks:
        ids.setdefault(c['release'].split('@')[0], set()).add(c['profiler_id'])
    check(len(ids['same']) == 1, 'what had not changed was disturbed')
    check(len(ids['other']) == 2, 'what has changed was not started anew')


def test_reload_of_an_earlier_section(box):
    """A process belongs to the first section that matches it, after a reload, too."""
    service = Service(box, {'wide': {}, 'job': {}})
    program, other = service.start('wide'), service.start('job')
    service.wait_profiled(program.pid, other.pid)
    service.add_exe('none')
    none = {'exe': service.exe['wide'], 'profile_session_sample_rate': 0}
    service.reload({'none': none, 'wide': {}, 'job': {}})
    service.wait_left(program.pid)
    check(service.is_profiled(other.pid), 'a process that the new section does not match')
    # In the other order "wide" takes it back.
    service.reload({'wide': {}, 'none': none, 'job': {}})
    service.wait_profiled(program.pid)
    service.stop()


def test_nothing_matches(box):
    """Without a match the daemon goes on, profiles no process, and ends on
    request."""
    service = Service(box, {'web': {}})
    is_told(service)
    wait_for(lambda: service.profd.helpers()['capture'] and
             service.profd.helpers()['ship'], 'its processes')
    check(service.profd.running(), 'it has ended')
    service.stop()
    check(not service.profd.chunks, 'there are chunks')


def test_costs_nothing(box):
    """The daemon keeps nothing of processes that match no section."""
    service = Service(box, {'web': {}})
    program = service.start('web')
    service.wait_profiled(program.pid)
    before = descriptors(service.profd.pid)
    exe = shutil.which('true')
    strangers = [box.start(['sleep', 1000]) for _ in range(20)]
    for _ in range(200):
        subprocess.run([exe], check=True)
    other = service.start('web')
    service.wait_profiled(other.pid)
    other.end()
    wait_for(lambda: len(descriptors(service.profd.pid)) <= len(before),
             'its descriptors are what they were')
    check(all(p.running() for p in strangers), 'one has ended')


def pidfds(pid):
    return list(descriptors(pid).values()).count('anon_inode:[pidfd]')


def test_burst_under_a_command_line(box):
    """More processes start at once than can wait for their command lines. Each
    one is checked, and none costs a descriptor."""
    mark = f'--of-{os.getpid()}'
    service = Service(box, {'web': {'exe': None, 'cmdline': f'*{mark}'}})
    # Each process ends at the end of the input that all share.
    crowd = box.start(['dash', '-c', 'exec 3<&0; i=0; '
                       'while [ $i -lt 300 ]; do '
                       'cat <&3 & i=$((i + 1)); done; echo all; wait'],
                      stdin=subprocess.PIPE)
    crowd.wait_line('all')
    mine = [box.start(['dash', '-c', 'read wait', mark],
                      stdin=subprocess.PIPE) for _ in range(3)]
    service.wait_profiled(*(program.pid for program in mine))
    wait_for(lambda: pidfds(service.profd.pid) == len(mine),
             'one pidfd for each that is profiled')
    for program in (crowd, *mine):
        program.process.stdin.close()


if __name__ == '__main__':
    harness.main(globals())
