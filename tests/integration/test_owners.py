#!/usr/bin/python3
"""Whose a process is: programs with other rights than their user, processes that change their ids,
and services whose ids are unlike others'.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess

import harness
import openmetrics
import stranger
import test_broker
import test_lifecycle
from harness import Skip, check, wait_for
from test_control import listening

HERE = pathlib.Path(__file__).parent

GROUP = 60011
SUBORDINATE = 300000
EACCES = 13


def names(profd):
    return {f.get('function') for c in profd.chunks for f in c['profile']['frames']}


def see(profd, name):
    """Waits until a chunk has a function whose name contains this."""
    wait_for(lambda: any(n and name in n for n in names(profd)) or not profd.running(),
             f'{name} in a chunk')


# A stand-in for unwind asks for what the target's user may not have.

def kinds():
    """Returns the numbers of enum file_kind by name."""
    text = (harness.ROOT / 'daemon/msg/msg_unwind.h').read_text()
    body = re.search(r'enum file_kind \{(.*?)\};', text, re.S)[1]
    return {name: n for n, name in enumerate(re.findall(r'^\s(FILE_KIND_\w+)', body, re.M), 1)}


class Spy:
    """A broker whose unwind process is hostile.py's spy."""

    def __init__(self, box, target):
        self.exes = test_broker.take_over(box, 'unwind', (HERE / 'hostile.py').read_text())
        (self.exes / 'types').write_text('\n'.join(test_broker.message_types()))
        (self.exes / 'attack').write_text('spy')
        self.profd = box.profd([target], '--leak-check', 'attach', '--chunk-seconds', '1',
                               exe=self.exes / 'sentry-profd')
        self.profd.wait_attached()

    def ask(self, kind, start=0, end=0):
        """Returns the error, and what the descriptor of the answer begins with; None: it has
        none."""
        answer = self.exes / 'spied'
        answer.unlink(missing_ok=True)
        question = self.exes / 'question'
        question.write_text(json.dumps([kinds()['FILE_KIND_' + kind], start, end]))
        os.rename(question, self.exes / 'ask')
        wait_for(lambda: answer.exists() or (self.exes / 'error').exists(), 'an answer')
        check(not (self.exes / 'error').exists(), 'the spy fails')
        error, text = json.loads(answer.read_text())
        return error, text


def mapping(pid, name):
    """Returns the range of the first mapping with this name."""
    for line in pathlib.Path(f'/proc/{pid}/maps').read_text().splitlines():
        if name in line:
            return [int(n, 16) for n in line.split()[0].split('-')]
    raise Skip(f'no {name} in maps')


def start_shell(box, program, **options):
    """A shell of the stranger that executes the program at a line."""
    shell = box.start(['sh', '-c', 'echo ready; read x; exec "$0" stay 0', program],
                      stdin=subprocess.PIPE, **options)
    shell.wait_line('ready')
    return shell


def execute(shell):
    shell.process.stdin.write(b'\n')
    shell.process.stdin.flush()
    shell.wait_line(r'ready.*\d+')


def test_no_memory_of_a_program_with_other_rights(box):
    """Neither of a set-group-ID program that the target executes, nor of the target what is no
    code."""
    stranger.need_root()
    program = stranger.copy(box, ['targets/ids']) / 'ids'
    os.chown(program, 0, GROUP)
    program.chmod(0o2755)
    shell = start_shell(box, program, **stranger.options())
    spy = Spy(box, shell)
    error, text = spy.ask('MAPS')
    check(error == 0 and text, f'maps of the user\'s own process: {error}')
    error, text = spy.ask('IMAGE', *mapping(shell.pid, '[vdso]'))
    check(error == 0 and text, f'the vDSO: {error}')
    for name in ('[stack]', '[heap]'):
        answer = spy.ask('IMAGE', *mapping(shell.pid, name))
        check(answer == (EACCES, None), f'{name}: {answer}')
    execute(shell)
    check(b'stay' in pathlib.Path(f'/proc/{shell.pid}/cmdline').read_bytes(), 'executed')
    for kind, at in (('MAPS', None), ('PROGRAM', None), ('IMAGE', '[stack]'), ('IMAGE', '[vdso]'),
                     ('IMAGE', '/ids')):
        answer = spy.ask(kind, *(mapping(shell.pid, at) if at else (0, 0)))
        check(answer == (EACCES, None), f'{kind} {at}: {answer}')
    spy.profd.interrupt(status=3)
    check(spy.profd.stats['files_other_owner'] == 5, f'{spy.profd.stats}')


# Processes that change their ids.

def start_ids(box, mode):
    program = box.start([stranger.copy(box, ['targets/ids']) / 'ids', mode, str(stranger.UID)],
                        stdin=subprocess.PIPE)
    program.wait_line(r'ready \d+')
    return program


def change(program):
    program.process.stdin.write(b'\n')
    program.process.stdin.flush()
    program.wait_line('done')


def unwinds(profd):
    return set(profd.helpers()['unwind'])


def test_a_worker_leaves_roots_unwind_process(box):
    """A process of root that takes a user's ids without an exec, as servers do."""
    stranger.need_root()
    worker, other = start_ids(box, 'worker'), box.napper()
    profd = box.profd([worker, other], '--chunk-seconds', '1').wait_attached()
    see(profd, 'ids_busy')
    check(len(unwinds(profd)) == 1, 'root has one unwind process')
    change(worker)
    wait_for(lambda: len(unwinds(profd)) == 2, 'an unwind process of its own')
    before = len(profd.chunks)
    wait_for(lambda: any('ids_busy' in (f.get('function') or '')
                         for c in profd.chunks[before:] for f in c['profile']['frames']),
             'it is profiled on')
    profd.interrupt()
    check(profd.stats['rights_changes'] == 1, f'{profd.stats}')


def check_workers(box, server):
    """Checks that a server's workers are profiled by one unwind process, the server by another,
    and that only operators see what the workers do. Returns the daemon."""
    server.wait_line(r'ready \d+')
    workers = harness.children(server.pid)
    check(len(workers) == 4, f'{workers}')
    wait_for(lambda: {os.stat(f'/proc/{w}').st_uid for w in workers} == {stranger.UID},
             'their uid')
    profd, ctl = listening(box, [server, *workers], '--chunk-seconds', '1')
    profd.wait_attached()
    check(len(unwinds(profd)) == 2, f'{len(unwinds(profd))} unwind processes')
    for worker in workers:
        seen = ctl.target(worker, uid=stranger.UID)
        check(seen['state'] == 'profiling' and seen['samples_taken'] is None, f'{seen}')
    wait_for(lambda: all(ctl.target(w)['chunks_sent'] > 1 for w in workers), 'chunks of each')
    found = {ctl.target(w)['profiler_id']: set() for w in workers}
    for c in profd.chunks:
        functions = {f.get('function') for f in c['profile']['frames']}
        found.get(c['profiler_id'], set()).update(functions)
    check(all('ids_busy' in functions for functions in found.values()), f'{found}')
    return profd


def test_workers_share_an_unwind_process(box):
    """Those of Apache and php-fpm: forked by root, and not dumpable since they have a user's
    ids."""
    stranger.need_root()
    server = box.start(program(box, 'prefork', str(stranger.UID)))
    profd = check_workers(box, server)
    profd.interrupt()
    check(profd.stats['rights_changes'] == 0, f'{profd.stats}')


def test_workers_with_a_capability_share_an_unwind_process(box):
    """Those of a service with User= and AmbientCapabilities=CAP_NET_BIND_SERVICE."""
    stranger.need_root()
    check_workers(box, box.start(with_capability(program(box, 'prefork', str(stranger.UID)))))


def test_a_user_does_not_see_a_process_that_acts_for_it(box):
    """A daemon of root that has the user's effective uid when it becomes a target."""
    stranger.need_root()
    program = start_ids(box, 'effective')
    change(program)
    check(os.stat(f'/proc/{program.pid}').st_uid == stranger.UID, 'its effective uid')
    profd, ctl = listening(box, [program])
    profd.wait_attached()
    seen = ctl.target(program.pid, uid=stranger.UID)
    check(seen['rate_hz'] == 101 and seen['samples_taken'] is None, f'{seen}')
    check('not permitted' in ctl.run('stop', program.pid, uid=stranger.UID, status=1).stderr,
          'the user does not control it')
    check(ctl.target(program.pid)['samples_taken'] is not None, 'operators do')


def test_a_changed_key_ends_a_run_once_in_ten_seconds(box):
    """A process that changes its uid all the time is profiled, in a run of its own."""
    stranger.need_root()
    program = start_ids(box, 'flip')
    profd = box.profd([program], '--chunk-seconds', '1').wait_attached()
    see(profd, 'ids_busy')
    profd.interrupt()
    check(profd.stats['rights_changes'] <= 1, f'{profd.stats}')


def test_a_run_that_waits_is_seen(box):
    """After a second change within ten seconds the status says that the process waits, and the time
    without a run is counted."""
    stranger.need_root()
    worker = start_ids(box, 'worker')
    profd, ctl = listening(box, [worker])
    profd.wait_attached()

    def shown():
        seen = ctl.target(worker.pid)
        return seen['state'], seen['profiler_id'], seen['last_error']
    change(worker)
    wait_for(lambda: openmetrics.total(ctl.metrics(), 'rights_changes_total') == 1 and
             shown()[1] is not None, 'the next run')
    change(worker)
    wait_for(lambda: shown()[0] == 'waiting', 'a run that waits')
    check(shown() == ('waiting', None, 'its rights change: it is profiled again after 10 s'),
          f'{shown()}')
    left_out = openmetrics.total(ctl.metrics(), 'processes_left_out', reason='rights')
    check(left_out == 1, f'{left_out}')
    wait_for(lambda: shown()[0] == 'profiling', 'the last run', 15)
    profd.interrupt()
    check(profd.stats['rights_changes'] == 2, f'{profd.stats}')
    check(5 < profd.stats['rights_unsampled_s'] < 15, f'{profd.stats}')


# Services go on working, and their functions have names.

def check_profiled(box, command, **options):
    stranger.need_root()
    if not shutil.which(str(command[0])):
        raise Skip(f'no {command[0]}')
    target = box.start(command, **options)
    target.wait_line(r'ready \d+')
    profd = box.profd([target], '--chunk-seconds', '1').wait_attached()
    see(profd, 'ids_busy')


def program(box, *mode):
    """Returns a command that computes, of a file of its own."""
    path = stranger.copy(box, ['targets/ids']) / 'ids'
    return [path, *(mode or ('stay', '0'))]


def test_a_file_capability(box):
    """Of a server that listens at port 80: cap_net_bind_service+ep."""
    command = program(box)
    os.setxattr(command[0], 'security.capability',
                struct.pack('<IIIII', 0x02000001, 1 << 10, 0, 0, 0))
    check_profiled(box, command, **stranger.options())


def with_capability(command):
    uid = str(stranger.UID)
    if not shutil.which('setpriv'):
        raise Skip('no setpriv')
    return ['setpriv', f'--reuid={uid}', f'--regid={uid}', '--clear-groups',
            '--inh-caps=+net_bind_service', '--ambient-caps=+net_bind_service', *command]


def test_ambient_capabilities(box):
    check_profiled(box, with_capability(program(box)))


def test_supplementary_groups(box):
    """Only one of the groups may read the program."""
    command = program(box)
    os.chown(command[0], 0, GROUP)
    command[0].chmod(0o750)
    check_profiled(box, command, **dict(stranger.options(), extra_groups=(GROUP + 1, GROUP)))


def test_a_file_that_its_user_may_not_read(box):
    command = program(box)
    command[0].chmod(0o711)
    check_profiled(box, command, **stranger.options())


def test_a_main_thread_that_has_exited(box):
    """The kernel gives the files of such a thread to root."""
    stranger.need_root()
    target = stranger.target(box, 'leaderless')
    target.signal(signal.SIGUSR1)
    test_lifecycle.wait_main_thread_is_gone(target)
    profd = box.profd([target], '--chunk-seconds', '1')
    profd.wait_chunks()
    profd.interrupt()
    check(profd.stats['captured'] > 0 and profd.stats['rights_changes'] == 0, f'{profd.stats}')


def test_a_rootless_container(box):
    check_profiled(box, ['unshare', '--user', '--map-root-user', *program(box)],
                   **stranger.options())


def test_a_subordinate_uid_of_a_rootless_container(box):
    """The maps are those that newuidmap writes: root of the container is the user, its other uids
    are subordinate uids. A server in the container drops its rights without an exec."""
    stranger.need_root()
    shell = box.start(['unshare', '--user', 'sh', '-c',
                       'echo ready; read x; exec setpriv --reuid=0 --regid=0 --clear-groups '
                       '"$0" prefork 33',
                       program(box)[0]], stdin=subprocess.PIPE, **stranger.options())
    shell.wait_line('ready')
    for name in ('uid_map', 'gid_map'):
        pathlib.Path(f'/proc/{shell.pid}/{name}').write_text(
            f'0 {stranger.UID} 1\n1 {SUBORDINATE} 100\n')
    shell.process.stdin.write(b'\n')
    shell.process.stdin.flush()
    shell.wait_line(r'ready \d+')
    workers = harness.children(shell.pid)
    wait_for(lambda: {os.stat(f'/proc/{w}').st_uid for w in workers} == {SUBORDINATE + 32},
             'their uid')
    profd = box.profd([shell, *workers], '--chunk-seconds', '1').wait_attached()
    check(len(unwinds(profd)) == 2, f'{len(unwinds(profd))} unwind processes')
    see(profd, 'ids_busy')


def test_su(box):
    """root's shell calls su, whose child takes the user's ids and then executes a program."""
    stranger.need_root()
    if not shutil.which('su'):
        raise Skip('no su')
    shell = box.start(['sh', '-c', 'echo ready; read x; su -s /bin/sh nobody -c "exec $0 stay 0"',
                       program(box)[0]], stdin=subprocess.PIPE)
    shell.wait_line('ready')
    profd = box.profd([shell], '--children', '--chunk-seconds', '1').wait_attached()
    shell.process.stdin.write(b'\n')
    shell.process.stdin.flush()
    pid = int(shell.wait_line(r'ready (\d+)')[1])
    try:
        check(os.stat(f'/proc/{pid}').st_uid != 0, 'its uid')
        see(profd, 'ids_busy')
    finally:
        os.kill(pid, signal.SIGKILL)
    profd.interrupt()
    check(profd.stats['rights_changes'] > 0, f'{profd.stats}')


def test_workers_that_are_forked_later_share_an_unwind_process(box):
    """Each is root's when it is born, and gets its key when it has the user's ids."""
    stranger.need_root()
    shell = box.start(['sh', '-c', 'echo ready; read x; exec "$0" prefork "$1"',
                       program(box)[0], str(stranger.UID)], stdin=subprocess.PIPE)
    shell.wait_line('ready')
    profd, ctl = listening(box, [shell], '--children', '--chunk-seconds', '1')
    profd.wait_attached()
    shell.process.stdin.write(b'\n')
    shell.process.stdin.flush()
    shell.wait_line(r'ready \d+')

    def workers():
        return [t for t in ctl.status()['targets'] if t['pid'] != shell.pid
                and os.stat(f'/proc/{t["pid"]}').st_uid == stranger.UID]
    wait_for(lambda: len(workers()) == 4 and all(w['chunks_sent'] for w in workers()),
             lambda: f'chunks of each: {workers()}')
    check(len(unwinds(profd)) == 2, f'{len(unwinds(profd))} unwind processes')
    see(profd, 'ids_busy')


if __name__ == '__main__':
    harness.main(globals())
