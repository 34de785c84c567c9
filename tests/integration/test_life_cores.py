#!/usr/bin/python3
"""A crashing program leaves the same core as without the profiler, in a file
or through a pipe. Runs alone: it changes the machine's core_pattern.
"""

import contextlib
import os
import pathlib
import resource
import signal
import struct
import subprocess

import harness
import life
from harness import BUILD, Skip, check

NT_PRSTATUS, NT_SIGINFO = 1, 0x53494749

PATTERN = pathlib.Path('/proc/sys/kernel/core_pattern')

# A size at which the writer waits hundreds of times for the pipe's reader.
MIB = 16


class Core:
    """The contents of its notes."""

    def __init__(self, path):
        # A truncated core has its notes, too.
        with open(path, 'rb') as file:
            core = file.read(1 << 20)
        self.size = os.path.getsize(path)
        self.signal = None
        self.threads = []  # rip and rsp of each
        self.notes = []    # type and size of each
        phoff, = struct.unpack_from('<Q', core, 32)
        phnum, = struct.unpack_from('<H', core, 56)
        for i in range(phnum):
            kind, _, offset, _, _, size = struct.unpack_from(
                '<IIQQQQ', core, phoff + 56 * i)
            if kind == 4:
                self.read_notes(core[offset:offset + size])

    def read_notes(self, data):
        at = 0
        while at < len(data):
            name, length, kind = struct.unpack_from('<III', data, at)
            start = at + 12 + (name + 3) // 4 * 4
            self.notes.append((kind, length))
            if kind == NT_PRSTATUS:
                # elf_prstatus: the registers begin at byte 112, and rip is the
                # 17th.
                regs = struct.unpack_from('<27Q', data, start + 112)
                self.threads.append((regs[16], regs[19]))
            if kind == NT_SIGINFO:
                self.signal = struct.unpack_from('<iii', data, start) + \
                    struct.unpack_from('<Q', data, start + 16)
            at = start + (length + 3) // 4 * 4


def crash(box, rate, mib, directory):
    """Runs a program until it crashes; returns its exit status and its core,
    which is in the directory."""
    program = box.start(
        ['bash', '-c', 'ulimit -c unlimited; exec setarch -R '
         f'{BUILD}/targets/life_rights crash {mib}'],
        stdin=subprocess.PIPE, cwd=directory)
    program.wait_line(r'ready \d+')
    profd = box.profd([program], '--rate', rate).wait_attached() if rate \
        else None
    life.begin(program)
    info = harness.wait_for(
        lambda: os.waitid(os.P_PID, program.pid,
                          os.WEXITED | os.WNOHANG | os.WNOWAIT), 'its end')
    program.wait()
    if profd:
        life.check_profd(profd)
    return info.si_code, info.si_status


def compare(box, mib, crash_one):
    end, alone = crash_one(None)
    check(end == (os.CLD_DUMPED, signal.SIGSEGV), f'an end by {end}')
    check(alone.signal[0] == signal.SIGSEGV and alone.signal[3] == 4242,
          f'{alone.signal}')
    check(alone.size > mib << 20, f'a core of {alone.size} bytes')
    for rate in life.RATES:
        under_end, under = crash_one(rate)
        check((under_end, under.signal) == (end, alone.signal),
              f'{end}, {alone.signal}; at {rate} Hz {under_end}, '
              f'{under.signal}')
        check(under.size == alone.size,
              f'{alone.size} bytes; at {rate} Hz {under.size}')
        check(under.notes == alone.notes,
              f'notes: {alone.notes}; at {rate} Hz {under.notes}')
        check(len(under.threads) == len(alone.threads) == 3,
              f'threads: {alone.threads}, {under.threads}')
        # Without random addresses two threads are at the same place: the
        # waiting one and the crashed one. A third one calculates.
        same = set(alone.threads) & set(under.threads)
        check(len(same) >= 2, f'places: {alone.threads}; at {rate} Hz '
                              f'{under.threads}')


def need_cores():
    if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        raise Skip('cores are forbidden')
    if os.uname().machine != 'x86_64':
        raise Skip('registers of another processor')


def test_in_a_file(box):
    need_cores()
    pattern = PATTERN.read_text().strip()
    if '/' in pattern or pattern.startswith('|'):
        raise Skip(f'cores go elsewhere: {pattern}')

    def crash_one(rate):
        directory = box.make_dir('core')
        end = crash(box, rate, MIB, directory)
        cores = list(directory.glob('core*'))
        check(len(cores) == 1, f'{len(cores)} cores: {end}')
        return end, Core(cores[0])
    compare(box, MIB, crash_one)


@contextlib.contextmanager
def core_pattern(text):
    """Sets core_pattern for all programs of this machine, for a moment."""
    before = PATTERN.read_text()
    if 'profd-test' in before:
        raise Skip('another one of these tests has changed core_pattern')
    try:
        PATTERN.write_text(text)
    except OSError as e:
        raise Skip(f'{PATTERN}: {e.strerror}') from None
    try:
        yield
    finally:
        PATTERN.write_text(before)


def test_through_a_pipe(box):
    """A core through a pipe, as to systemd-coredump(8). If a thread were
    interrupted while it writes a core into a pipe, it would stop writing."""
    need_cores()
    directory = box.make_dir('core')
    helper = directory / 'helper'
    helper.write_text(f'#!/bin/sh\ncat >{directory}/part.$1 &&'
                      f' mv {directory}/part.$1 {directory}/core.$1\n')
    helper.chmod(0o755)

    def crash_one(rate):
        end = crash(box, rate, MIB, directory)
        core = directory / f'core.{box.programs[-1 if not rate else -2].pid}'
        # The helper runs in the initial namespaces, which may have other
        # files.
        if rate is None and not helper_ran(core):
            raise Skip('the kernel\'s helper does not run here')
        harness.wait_for(core.exists, 'the core')
        return end, Core(core)

    def helper_ran(core):
        with contextlib.suppress(harness.Failure):
            return harness.wait_for(core.exists, 'a core', 10)
        return False
    with core_pattern(f'|{helper} %P'):
        compare(box, MIB, crash_one)


if __name__ == '__main__':
    harness.main(globals())
