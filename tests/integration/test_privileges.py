#!/usr/bin/python3
"""The rights of the running processes by /proc: they equal the table of
processes in docs/ARCHITECTURE.md. Also their descriptors and environments.
"""

import os
import pathlib
import re
import signal

import harness
import stranger
from harness import Skip, check, proc_status, proc_text, wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]

# <linux/capability.h>
CAPABILITIES = {
    'CAP_DAC_READ_SEARCH': 2,
    'CAP_KILL': 5,
    'CAP_SETGID': 6,
    'CAP_SETUID': 7,
    'CAP_SETPCAP': 8,
    'CAP_SYS_PTRACE': 19,
    'CAP_SYS_NICE': 23,
    'CAP_CHECKPOINT_RESTORE': 40,
}

# Capabilities that capture needs and the broker does not, and the one that a
# child needs to limit its bounding set. The broker is permitted to have them,
# so that it can pass them on, and does not use them.
HANDED_ON = {'CAP_SYS_NICE', 'CAP_SETPCAP'}

SECCOMP_FILTER = '2'


def need_root():
    if os.geteuid() != 0:
        raise Skip('only root has privileges to give up, and may look')


def bits(names):
    return sum(1 << CAPABILITIES[name] for name in names)


def documented():
    """Returns {kind: capability names} from the table of processes."""
    text = (ROOT / 'docs/ARCHITECTURE.md').read_text()
    rows = re.findall(r'^\| `sentry-profd(?:-(\w+))?` \|[^|]*\|([^|]*)\|$',
                      text, re.M)
    found = {kind or 'broker': set(re.findall(r'CAP_\w+', keeps))
             for kind, keeps in rows}
    check(set(found) >= {'broker', 'capture', 'unwind', 'ship'},
          f'the table of processes in docs/ARCHITECTURE.md: {found}')
    return found


def processes(profd):
    """Returns {kind: pid}, one of each kind, all of them working."""
    profd.wait_attached()

    def sandboxed():
        found = profd.helpers()
        return all(found.values()) and all(
            proc_status(pid, 'Seccomp') == SECCOMP_FILTER
            for kind in found for pid in found[kind]) and found
    found = wait_for(sandboxed, 'three children under filters')
    return {'broker': profd.pid} | {k: pids[0] for k, pids in found.items()}


def capability_set(pid, field):
    return int(proc_status(pid, field), 16)


def check_capabilities(kind, pid, names):
    own = permitted = bits(names)
    bounding = 0
    if kind == 'broker':
        permitted = bounding = bits(names | HANDED_ON)
    for field, expected in (('CapEff', own), ('CapPrm', permitted),
                            ('CapInh', 0), ('CapAmb', 0),
                            ('CapBnd', bounding)):
        found = capability_set(pid, field)
        check(found == expected,
              f'{kind}: {field} is {found:x}, not {expected:x}')


def ids(pid, field):
    return {int(n) for n in proc_status(pid, field).split()}


def test_ids_and_capabilities(box):
    need_root()
    found = processes(box.profd([box.target('shares')]))
    table = documented()
    for kind, pid in found.items():
        check_capabilities(kind, pid, table[kind])
    own = {}
    for kind in ('capture', 'unwind', 'ship'):
        pid = found[kind]
        # The real, effective, saved and file system ids are equal, and not
        # root's.
        for field in ('Uid', 'Gid'):
            n = ids(pid, field)
            check(len(n) == 1 and 0 not in n, f'{kind}: {field} is {n}')
        check(proc_status(pid, 'Groups') == '',
              f'{kind} has groups: {proc_status(pid, "Groups")}')
        own[kind] = ids(pid, 'Uid').pop()
    check(len(set(own.values())) == 3, f'they share a uid: {own}')


def test_no_way_back(box):
    need_root()
    found = processes(box.profd([box.target('shares')]))
    for kind, pid in found.items():
        check(proc_status(pid, 'NoNewPrivs') == '1',
              f'{kind} may have new privileges')
        if kind == 'broker':
            continue
        # The files of a process that is not dumpable belong to root: proc(5).
        check(os.stat(f'/proc/{pid}/mem').st_uid == 0, f'{kind} is dumpable')
        check(proc_status(pid, 'Seccomp') == SECCOMP_FILTER,
              f'{kind} is under no filter')


def test_under_no_new_privs(box):
    """With no_new_privs from the start, as the unit sets it, everything works.
    """
    need_root()
    profd = box.profd([box.target('shares')], wrapper=('setpriv',
                                                       '--no-new-privs'))
    found, table = processes(profd), documented()
    for kind, pid in found.items():
        check_capabilities(kind, pid, table[kind])


def niceness(pid):
    return os.getpriority(os.PRIO_PROCESS, pid)


def test_broker_and_unwind_go_before_their_starter(box):
    """Among busy threads of the same priority the ring fills before unwind's
    turn comes, and a short program ends before the broker's. ship waits."""
    need_root()
    for own, expected in ((0, -10), (5, -5), (-15, -20)):
        profd = box.profd([box.target('shares')],
                          wrapper=('nice', '-n', own - niceness(0)))
        found = processes(profd)
        got = [niceness(pid) for pid in (profd.pid, found['unwind'],
                                         found['ship'])]
        check(got == [expected, expected, own],
              f'the nice values of the broker, unwind and ship: {got}, not '
              f'{[expected, expected, own]}')
        profd.end()


def test_unwind_has_resource_limits(box):
    """unwind's memory and CPU time are limited, whatever a file contains, and
    the kernel ends unwind first if memory is short."""
    pid = processes(box.profd([box.target('shares')]))['unwind']
    limits = dict(re.findall(r'^Max (.*?)  +(\S+) ', proc_text(pid, 'limits'),
                             re.M))
    check(limits['data size'] == str(2 << 30), f'{limits}')
    check(limits['file size'] == str(256 << 20), f'{limits}')
    check(proc_text(pid, 'oom_score_adj') == '1000\n', 'oom_score_adj')
    timers = proc_text(pid, 'timers')
    check(f'signal: {signal.SIGXCPU.value}/' in timers, f'timers: {timers}')


# The positions of the rules in a filter vary with the allowed calls. The next
# test and the unit tests show that the rules work.
def test_profile_with_filters_that_kill(box):
    server = box.server()
    target = box.target('threads')
    env = server.env | {'SENTRY_PROFD_SECCOMP_KILL': '1'}
    profd = box.profd([target], '--chunk-seconds', '1', '--dsn', server.dsn,
                      table=True, env=env)
    found = processes(profd)
    profd.wait_chunks(3)
    profd.interrupt()
    check('signal' not in profd.stderr, f'a process died: {profd.stderr}')
    server.check_requests()
    chunks = profd.stats['chunks']
    check(chunks['made'] >= 3 and chunks['made'] == chunks['sent'] ==
          chunks['written'] == len(server.chunks) == len(profd.chunks),
          f'made, sent, written, received, files: {chunks}, '
          f'{len(server.chunks)}, {len(profd.chunks)}')
    names = {f.get('function', '') for c in profd.chunks
             for f in c['profile']['frames']}
    check(any('TreeJob' in n or 'SortJob' in n for n in names),
          f'no names of the target: {sorted(names)}')
    check('Hottest functions' in profd.stdout, f'no table: {profd.stdout}')
    for pid in found.values():
        check(harness.state(pid) in ('', 'Z'), 'a process is left')


def test_each_user_has_an_unwind_process(box):
    need_root()
    targets = [box.target('shares'), box.target('shares')]
    targets += [stranger.target(box, 'shares', uid=stranger.UID + n)
                for n in range(2)]
    profd = box.profd(targets).wait_attached()
    wait_for(lambda: len(profd.helpers()['unwind']) == 3,
             'an unwind process for each of three users')
    processes(profd)
    unwinds = profd.helpers()['unwind']
    check(len(unwinds) == 3, f'there are {len(unwinds)}')
    for pid in unwinds:
        check_capabilities('unwind', pid, set())
    profd.wait_looks()
    profd.interrupt()
    for t in profd.stats['targets']:
        check(t['unwind']['complete'] > 0, f'no stacks of {t["pid"]}: {t}')


def counts(pid):
    return sorted(harness.descriptors(pid).values())


def test_descriptors(box):
    """Each process has the descriptors that it needs, and not more with time.
    """
    need_root()
    target = box.target('short_threads')
    profd = box.profd([target], '--chunk-seconds', '1')
    found = processes(profd)
    profd.wait_chunks()
    terminal = [n for n in ('/dev/null', str(profd.err_path))]
    for kind in ('unwind', 'ship'):
        # A chunk may be in work.
        links = set(harness.descriptors(found[kind]).values()) - {
            '/memfd:chunk (deleted)'}
        check(all(not l.startswith('/') or l in terminal for l in links),
              f'{kind} has files open: {links}')
    paths = [l for l in harness.descriptors(found['capture']).values()
             if l.startswith('/') and l not in terminal and
             not l.startswith('/memfd:')]
    check(paths and all(l.startswith(f'/proc/{target.pid}')
                        for l in paths),
          f'capture has files open that are not the target\'s: {paths}')

    def at_rest(kind):
        # Without a helper and a chunk in work: the lowest number of some
        # readings.
        return min((counts(found[kind]) for _ in range(50)), key=len)
    before = {kind: at_rest(kind) for kind in ('broker', 'unwind', 'ship')}
    profd.wait_chunks(3)
    for kind, first in before.items():
        wait_for(lambda k=kind, f=first: len(counts(found[k])) <= len(f),
                 f'{kind} to have no more descriptors than {first}; it has '
                 f'{counts(found[kind])}')
    # Two descriptors for each living thread, and some of its own.
    wait_for(lambda: len(counts(found['capture'])) <=
             2 * len(harness.threads(target.pid)) + 16,
             'capture to close what belongs to threads that have ended')
    profd.interrupt()


# The variables that ship gets, and no other process.
FOR_SHIP = {'http_proxy', 'https_proxy', 'HTTPS_PROXY', 'all_proxy',
            'ALL_PROXY', 'no_proxy', 'NO_PROXY'}


def test_environment_and_command_line(box):
    need_root()
    server = box.server()
    key = 'c0ffee00c0ffee00c0ffee00c0ffee00'
    dsn = f'https://{key}@localhost:{server.port}/42'
    for args, more in (((), {'SENTRY_DSN': dsn}), (('--dsn', dsn), {})):
        env = server.env | {'PASSWORD': key, 'SENTRY_RELEASE': key,
                            'no_proxy': 'localhost'} | more
        profd = box.profd([box.target('shares')], *args, env=env)
        found = processes(profd)
        for kind in ('capture', 'unwind', 'ship'):
            proc = pathlib.Path(f'/proc/{found[kind]}')
            environ = proc.joinpath('environ').read_bytes()
            command = proc.joinpath('cmdline').read_bytes()
            names = {e.partition(b'=')[0].decode()
                     for e in environ.split(b'\0') if e}
            # Its stderr is a pipe to the broker, in the journal's format.
            check(names <= {'JOURNAL_STREAM'} | (FOR_SHIP if kind == 'ship' else set()),
                  f'{kind} has in its environment {names}')
            check(kind != 'ship' or 'no_proxy' in names,
                  f'ship does not have what it needs: {names}')
            check(key.encode() not in environ + command,
                  f'{kind}: the key can be read')
            check(command.count(b'\0') == 1, f'{kind} has arguments')
        profd.end()


if __name__ == '__main__':
    harness.main(globals())
