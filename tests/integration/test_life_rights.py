#!/usr/bin/python3
"""What the kernel decides by a process's rights, or by its tracer's: filters of
calls, set-user-ID programs, cores, other tracers.
"""

import os
import pathlib
import resource
import signal
import struct
import subprocess

import harness
import life
import stranger
from harness import BUILD, Skip, check

NT_PRSTATUS, NT_SIGINFO = 1, 0x53494749


def test_filters(box):
    """TRAP, ERRNO, TRACE without a tracer for it; none of our making."""
    life.compare(box, 'life_rights', 'filters', 600)


def run_setuid(box, rate, by=None):
    """A program of nobody's becomes root's by exec; the target's last words."""
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
    life.check_sums(profd)
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


def test_a_setuid_program_under_an_ordinary_user(box):
    """It has no more rights than he: else he could take them from it."""
    need_setuid(box)
    stranger.need_ptrace()
    lines = run_setuid(box, 101, by=stranger.profd)
    uid = stranger.UID
    check(lines in ([f'ids {uid} {uid} {uid} secure 0'],
                    [f'ids {uid} {uid} {uid} secure 1']), f'{lines}')


def notes(core):
    """Of a core file: its signal, the address, and each thread's rip and rsp."""
    found = {'signal': None, 'threads': []}
    phoff, = struct.unpack_from('<Q', core, 32)
    phnum, = struct.unpack_from('<H', core, 56)
    for i in range(phnum):
        kind, _, offset, _, _, size = struct.unpack_from(
            '<IIQQQQ', core, phoff + 56 * i)
        if kind != 4:
            continue
        at = offset
        while at < offset + size:
            name, length, note = struct.unpack_from('<III', core, at)
            data = at + 12 + (name + 3) // 4 * 4
            if note == NT_PRSTATUS:
                # elf_prstatus: registers behind 112 bytes, rip is the 17th.
                regs = struct.unpack_from('<27Q', core, data + 112)
                found['threads'].append((regs[16], regs[19]))
            if note == NT_SIGINFO:
                found['signal'] = struct.unpack_from('<iii', core, data) + \
                    struct.unpack_from('<Q', core, data + 16)
            at = data + (length + 3) // 4 * 4
    return found


def crash(box, rate):
    directory = box.make_dir('core')
    program = box.start(
        ['bash', '-c', 'ulimit -c unlimited; exec setarch -R '
         f'{BUILD}/targets/life_rights crash'],
        stdin=subprocess.PIPE, cwd=directory)
    program.wait_line(r'ready \d+')
    profd = box.profd([program], '--rate', rate).wait_attached() if rate \
        else None
    life.begin(program)
    harness.wait_for(
        lambda: os.waitid(os.P_PID, program.pid,
                          os.WEXITED | os.WNOHANG | os.WNOWAIT), 'its end')
    info = os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
    program.wait()
    if profd:
        life.check_profd(profd)
    cores = list(directory.glob('core*'))
    check(len(cores) == 1, f'{len(cores)} cores: {info}')
    return (info.si_code, info.si_status), notes(cores[0].read_bytes())


def test_a_core(box):
    """The same signal, address and threads; the one that waits is where it was
    and so is the one that crashed."""
    pattern = pathlib.Path('/proc/sys/kernel/core_pattern').read_text().strip()
    if '/' in pattern or pattern.startswith('|'):
        raise Skip(f'cores go elsewhere: {pattern}')
    if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        raise Skip('cores are forbidden')
    if os.uname().machine != 'x86_64':
        raise Skip('registers of another processor')
    end, alone = crash(box, None)
    check(end == (os.CLD_DUMPED, signal.SIGSEGV), f'an end by {end}')
    check(alone['signal'][0] == signal.SIGSEGV and alone['signal'][3] == 4242,
          f'{alone}')
    for rate in life.RATES:
        under_end, under = crash(box, rate)
        check(under_end == end and under['signal'] == alone['signal'],
              f'{end}, {alone}; at {rate} Hz {under_end}, {under}')
        check(len(under['threads']) == len(alone['threads']) == 3,
              f'threads: {alone}, {under}')
        # Without random addresses two are in the same place; one calculates.
        same = set(alone['threads']) & set(under['threads'])
        check(len(same) >= 2, f'places: {alone}; at {rate} Hz {under}')


def test_another_tracer_is_refused(box):
    """Its own error, and nothing of ours is disturbed."""
    target = box.target('shares')
    profd = box.profd([target], '--rate', '1000').wait_attached()
    for _ in range(50):
        check(harness.libc.ptrace(0x4206, target.pid, 0, 0) == -1,
              'two tracers')
    profd.interrupt()
    life.check_quiet(profd)
    life.check_sums(profd)
    check(harness.tracer(target.pid) == 0 and target.running(),
          'the target is not as it was')


if __name__ == '__main__':
    harness.main(globals())
