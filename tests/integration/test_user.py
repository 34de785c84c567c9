#!/usr/bin/python3
"""An ordinary user profiles his own process: the profile is as good without
root's rights, and the processes are confined, too.
"""

import os

import chunk_rules
import harness
import stranger
from account import check_sums
from harness import check, proc_status, wait_for
from layout import Layout


def uid():
    return stranger.UID if os.geteuid() == 0 else os.getuid()


def functions(profd):
    return {f.get('function') for c in profd.chunks
            for f in c['profile']['frames']}


def check_processes(profd):
    profd.wait_attached()
    found = wait_for(lambda: all(profd.helpers().values()) and
                     profd.helpers(), 'all children')
    pids = [profd.pid] + [pid for ps in found.values() for pid in ps]
    check(len(pids) == 4, f'four processes: {pids}')
    for pid in pids:
        name = harness.exe_name(pid)
        check(set(proc_status(pid, 'Uid').split()) == {str(uid())},
              f'{name} has uids {proc_status(pid, "Uid")}')
        for field in ('CapEff', 'CapPrm', 'CapInh', 'CapAmb'):
            check(int(proc_status(pid, field), 16) == 0,
                  f'{name}: {field} is {proc_status(pid, field)}')
    # The filter is the last thing that they install before they work.
    for pid in found['unwind'] + found['ship']:
        wait_for(lambda p=pid: proc_status(p, 'Seccomp') == '2',
                 f'a filter for {harness.exe_name(pid)}')
    for pid in pids[1:]:
        check(proc_status(pid, 'NoNewPrivs') == '1',
              f'{harness.exe_name(pid)} may have new privileges')


# Only root may use map_files, so every image is opened by its path in maps.
def test_profile(box):
    stranger.need_ptrace()
    target = stranger.target(box, 'shares')
    layout = Layout(target.pid) if os.geteuid() == 0 else None
    env = harness.environment(SENTRY_PROFD_SECCOMP_KILL='1')
    profd = stranger.profd(box, [target], env=env)
    check_processes(profd)
    harness.wait_work(target.pid, 0.5)
    profd.interrupt()
    envelope, = profd.envelopes
    found = chunk_rules.problems(envelope, layout)
    check(found == [], f'{found[:5]}')
    names = functions(profd)
    # The names of the program are in .symtab, those of libc in .dynsym, and
    # the vDSO, which is no file, needs none here.
    for name in ('busy_seventy', 'busy_thirty', 'work', 'main', 'sleeper',
                 '__libc_start_main'):
        check(name in names, f'{name} is not among {names}')
    stats = profd.stats
    ends = stats['unwind']
    check(ends['complete'] > 0 and ends['truncated'] == 0 and
          ends['failed'] == {}, f'stacks are not complete: {ends}')
    check_sums(stats, arrived='written')
    check(target.running() and harness.tracer(target.pid) == 0,
          'the target is not as it was')


def test_executable_that_was_deleted(box):
    """The kernel's link still leads to the deleted file."""
    stranger.need_ptrace()
    target = stranger.target(box, 'shares')
    os.unlink(os.readlink(f'/proc/{target.pid}/exe'))
    profd = stranger.profd(box, [target]).wait_attached()
    harness.wait_work(target.pid, 0.5)
    profd.interrupt()
    chunk, = profd.chunks
    sleeping = [b for b in chunk_rules.bars(chunk)
                if b.thread != str(target.pid)]
    check(sleeping and all('nanosleep' in b.names[0] for b in sleeping),
          f'the sleeper: {[b.names for b in sleeping]}')
    check({'busy_seventy', 'work', 'sleeper'} <= functions(profd),
          f'{functions(profd)}')


def test_server(box):
    stranger.need_ptrace()
    server = box.server()
    for path in (server.dir, server.dir / 'ca.pem'):
        path.chmod(path.stat().st_mode | 0o055)
    target = stranger.target(box, 'shares')
    profd = stranger.profd(box, [target], '--dsn', server.dsn,
                           env=server.env).wait_attached()
    profd.wait_looks().interrupt()
    server.check_requests()
    check(profd.stats['chunks']['sent'] == 1, f'{profd.stats["chunks"]}')


if __name__ == '__main__':
    harness.main(globals())
