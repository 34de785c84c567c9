#!/usr/bin/python3
"""Effects that depend on a process's rights, or on those of its tracer:
seccomp filters, set-user-ID programs, other tracers.
"""

import os
import subprocess

import harness
import life
import stranger
from account import check_sums
from harness import Skip, check, wait_for

harness.filters_kill()


def test_filters(box):
    """Filters with TRAP, ERRNO, and TRACE without a tracer: the profiler adds
    no event."""
    life.compare(box, 'life_rights', 'filters', 600)


def test_strict_mode(box):
    """SECCOMP_MODE_STRICT: resumed calls are the same permitted calls."""
    life.compare(box, 'life_filters', 'strict', 60)


def test_calls_without_restart_syscall(box):
    """The filter kills at restart_syscall. Each call that would need it gets a
    signal. Also SECCOMP_RET_LOG."""
    life.compare(box, 'life_filters', 'waits', 80)


def run_setuid(box, rate, by=None):
    """A program of another user becomes root's by exec. Returns the target's
    last lines."""
    directory = stranger.copy(box, ['targets/life_rights'])
    privileged = directory / 'privileged'
    privileged.write_bytes((directory / 'life_rights').read_bytes())
    privileged.chmod(0o4755)
    program = box.start([directory / 'life_rights', 'exec', privileged],
                        stdin=subprocess.PIPE, **stranger.options())
    program.wait_line(r'ready \d+')
    if not rate:
        life.begin(program)
        return life.transcript(program)
    profd = (by or harness.Box.profd)(*((box, [program], '--rate', rate)))
    profd.wait_attached()
    life.begin(program)
    lines = life.transcript(program)
    profd.finish()
    check_sums(profd.stats, arrived='written')
    return lines


def need_setuid(box):
    stranger.need_root()
    if os.statvfs(box.dir).f_flag & os.ST_NOSUID:
        raise Skip('no set-user-ID programs in the directory of the test')


def test_a_setuid_program_keeps_its_rights(box):
    need_setuid(box)
    alone = run_setuid(box, None)
    check(alone == [f'ids {stranger.UID} 0 0 secure 1'], f'{alone}')
    for rate in life.RATES:
        life.check_same(alone, run_setuid(box, rate), rate)


def unwinds_after_exec(box, mode):
    """Returns how many unwind processes serve a stranger's process after it has executed a program
    of root's with this mode, which is profiled."""
    program = stranger.copy(box, ['targets/shares']) / 'shares'
    program.chmod(mode)
    target = box.start(['sh', '-c', 'echo ready; read x; exec "$0"', program],
                       stdin=subprocess.PIPE, **stranger.options())
    target.wait_line('ready')
    profd = box.profd([target], '--chunk-seconds', '1').wait_attached()
    target.process.stdin.write(b'\n')
    target.process.stdin.flush()
    target.wait_line(r'ready.*\d+')
    wait_for(lambda: any('busy' in (f.get('function') or '') for c in profd.chunks
                         for f in c['profile']['frames']), 'the program is sampled')
    n = len(profd.helpers()['unwind'])
    profd.interrupt()
    check_sums(profd.stats, arrived='written')
    return n


def test_a_setuid_program_has_an_unwind_process_of_its_own(box):
    """That of the old user must not get memory of a program that has other rights."""
    need_setuid(box)
    check(unwinds_after_exec(box, 0o755) == 1, 'a program without rights of its own')
    check(unwinds_after_exec(box, 0o4755) == 2, 'a set-user-ID program')


def test_a_setuid_program_under_an_ordinary_user(box):
    """Under an ordinary user's profiler the program gets no further rights;
    otherwise the user could use them."""
    need_setuid(box)
    stranger.need_ptrace()
    lines = run_setuid(box, 101, by=stranger.profd)
    uid = stranger.UID
    check(lines in ([f'ids {uid} {uid} {uid} secure 0'],
                    [f'ids {uid} {uid} {uid} secure 1']), f'{lines}')


def test_another_tracer_is_refused(box):
    """The other tracer gets an error, and profiling is not disturbed."""
    target = box.target('shares')
    profd = box.profd([target], '--rate', '1000').wait_attached()
    for _ in range(50):
        check(harness.libc.ptrace(0x4206, target.pid, 0, 0) == -1,
              'two tracers')
    profd.interrupt()
    life.check_quiet(profd)
    check_sums(profd.stats, arrived='written')
    check(harness.tracer(target.pid) == 0 and target.running(),
          'the target is not as it was')


if __name__ == '__main__':
    harness.main(globals())
