#!/usr/bin/python3
"""Makes the recorded samples of tests/golden/stacks anew.

usage: record.py [x86_64|aarch64]...
       record.py --here DIRECTORY

Into x86_64/ and aarch64/ go: tiny, the program (tiny.c); maps, its memory; for
each kind of sample KIND.sample, the record as capture writes it to the ring
(lib/capture/sample.h); and KIND.frames, what its stack is: not by an unwinder,
but by which functions the program has called, and where the disassembly has
those calls. tests/unit/unwind/check_recorded.c compares.

This project's capture records them (build/oracle/record). aarch64's are recorded in an emulated
machine, in which tests/aarch64/run.py runs this script with --here, after `make check-aarch64`
has made the machine and the executables. The compiler is aarch64-linux-gnu-gcc, or what CC_AARCH64
says.
"""

import base64
import ctypes
import io
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BUILD = ROOT / os.environ.get('BUILD', 'build')

CFLAGS = ('-O1 -g0 -std=gnu11 -nostdlib -static -no-pie -fno-pie '
          '-ffreestanding -fno-stack-protector -fno-stack-clash-protection '
          '-fasynchronous-unwind-tables -Wl,-z,noseparate-code '
          '-Wl,-z,max-page-size=4096 -Wl,--build-id=none').split()

ADDR_NO_RANDOMIZE = 0x0040000
# The number of read(2).
READ = '0' if os.uname().machine == 'x86_64' else '63'
# Before each line of the archive of the samples, which --here prints.
MARK = 'archive: '


class Code:
    """A program's functions: {name: [(address, instruction)]}."""

    def __init__(self, objdump, path):
        self.functions = {}
        text = subprocess.run([objdump, '-d', '--no-show-raw-insn', path],
                              check=True, capture_output=True, text=True).stdout
        for line in text.splitlines():
            if m := re.fullmatch(r'([0-9a-f]+) <(.+)>:', line):
                function = self.functions.setdefault(m[2], [])
            elif m := re.fullmatch(r' +([0-9a-f]+):\t(.*)', line):
                function.append((int(m[1], 16), m[2]))

    def start(self, name):
        return self.functions[name][0][0]

    def behind(self, name, pattern, number=0):
        """The address behind an instruction of a function."""
        code = self.functions[name]
        found = [addr for addr, text in code if re.search(pattern, text)]
        # It may be the function's last one.
        return min(addr for other in self.functions.values()
                   for addr, _ in other if addr > found[number])

    def behind_call(self, name, callee):
        return self.behind(name, fr'^(call|bl)\s.*<{callee}>$')

    def where(self, addr):
        start, name = max((code[0][0], name)
                          for name, code in self.functions.items()
                          if code[0][0] <= addr)
        return f'{name}+{addr - start:#x}'


class X86:
    name = 'x86_64'
    compiler = ['gcc', '-fcf-protection=none']
    objdump = 'objdump'
    indirect, system, step = r'^call\s+\*', '^syscall', 1
    # Of turn's instructions: all of the prologue, one within, the epilogue.
    turn = (0, 1, 2, 3, 4, -4, -3, -2, -1)
    # At each of their instructions; and within what a function has called.
    lazy = {'plt': 'plt', 'lazy': 'plt', 'plt0': 'plt', 'resolver': 'plt',
            'init': 'init', 'kept': 'kept', 'nothing': 'kept'}
    kinds = {'blocked': ('wait', 'blocked'), 'stopped': ('wait', 'stopped'),
             'signal': ('signal', 'stopped'), 'bare': ('bare', 'stopped'),
             'bare_blocked': ('bare', 'blocked')}


def keep_addresses():
    if ctypes.CDLL(None).personality(ctypes.c_ulong(ADDR_NO_RANDOMIZE)) < 0:
        raise OSError('personality')


class Aarch64:
    name = 'aarch64'
    compiler = [*os.environ.get('CC_AARCH64', 'aarch64-linux-gnu-gcc').split(),
                '-mbranch-protection=standard']
    objdump = 'aarch64-linux-gnu-objdump'
    indirect, system, step = r'^blr\s', '^svc', 4
    turn = (0, 1, 2, 3, 4, -5, -4, -3, -2, -1)
    lazy = {}
    kinds = {'blocked': ('wait', 'blocked'), 'stopped': ('wait', 'stopped'),
             'signal': ('signal', 'stopped'), 'bare': ('bare', 'stopped')}


def record(argument, how, directory, path):
    """Records the program in the directory. how: as for build/oracle/record. Returns the maps."""
    process = subprocess.Popen(['./tiny', argument], stdin=subprocess.PIPE, env={}, cwd=directory,
                               preexec_fn=keep_addresses)
    try:
        if how in ('blocked', 'stopped'):
            call = pathlib.Path(f'/proc/{process.pid}/syscall')
            while call.read_text().split()[0] != READ:
                pass
        subprocess.run([BUILD / 'oracle/record', str(process.pid), path, how], check=True)
        text = pathlib.Path(f'/proc/{process.pid}/maps').read_text()
        # Which file of which machine does not matter.
        return re.sub(r' [0-9a-f:]+ \d+ +/.*', ' 00:01 1 /tiny', text)
    finally:
        process.kill()
        process.wait()


def record_all(directory):
    """Records what the plan in the directory says, into the directory."""
    for kind, (argument, how) in json.loads((directory / 'plan').read_text()).items():
        maps = record(argument, how, directory, directory / f'{kind}.sample')
    (directory / 'maps').write_text(maps)


def record_here(directory):
    record_all(directory)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode='w:xz') as tar:
        for path in (*directory.glob('*.sample'), directory / 'maps'):
            tar.add(path, path.name)
    text = base64.b64encode(archive.getvalue()).decode()
    for at in range(0, len(text), 1000):
        print(MARK + text[at:at + 1000])


def record_in_machine(directory):
    """As record_all(), in an emulated machine. The directory is in build/arm64."""
    path = directory.relative_to(ROOT)
    output = subprocess.run([ROOT / 'tests/aarch64/run.py', BUILD / 'arm64-machine', 'build/arm64',
                             '--command', f'python3 tests/golden/stacks/record.py --here {path}'],
                            check=True, stdout=subprocess.PIPE, text=True).stdout
    text = ''.join(line.removeprefix(MARK) for line in output.splitlines() if line.startswith(MARK))
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(text))) as tar:
        tar.extractall(directory)


def frames(arch, code, kind, pc):
    """As check_recorded.c prints them."""
    function = kind.split('_')[0]
    called = {'signal': 'leaf_signal', 'bare': 'fixed', 'bare_blocked': 'fixed',
              'blocked': 'leaf_wait', 'stopped': 'leaf_wait'}
    leaf = 'leaf_lazy' if function in arch.lazy else 'leaf_run'
    outer = [code.behind_call('middle', called.get(kind, leaf)),
             code.behind_call('outer', 'middle'),
             code.behind_call('_start', 'outer')]
    if kind == 'signal':
        inner = [code.behind_call('handler', 'leaf_wait'),
                 code.start('restorer') + arch.step,
                 # The third call: kill.
                 code.behind('leaf_signal', arch.system, 2) + arch.step]
    elif kind.startswith('bare'):
        inner = [code.behind('bare', arch.indirect),
                 code.behind_call('fixed', 'bare')]
    elif function in arch.lazy:
        inner = [code.behind_call('leaf_lazy', arch.lazy[function])]
        if function == 'nothing':
            inner.insert(0, code.behind_call('kept', 'nothing'))
    elif kind.startswith('turn'):
        inner = [code.behind_call('leaf_run', 'turn')]
    else:
        inner = []
    guessed = []
    if kind.startswith('bare'):
        # By the frame pointer; which is all that is known of the second.
        guessed = ['fixed'] if arch.step == 1 else ['fixed', 'middle']
    elif kind == 'blocked':
        # The one that middle needs is looked for.
        guessed = ['outer']
    elif function in arch.lazy and function != 'resolver':
        # Nothing but these functions' own code says where they return to.
        guessed = ['kept', 'leaf_lazy']
    lines = []
    for i, addr in enumerate([pc, *inner, *outer]):
        where = code.where(addr - (i > 0))
        lines.append(f'{addr:#x} {where}' +
                     ' guessed' * (where.split('+')[0] in guessed and i > 0))
    if kind == 'blocked' and arch.step != 1:
        # Where leaf_wait returns to is in a register that is not known.
        return [lines[0], 'unknown_register']
    return [*lines, 'root']


def make(arch, out):
    """Makes everything in a directory of the build, then replaces the files in out."""
    directory = BUILD / 'arm64/golden' if arch.name == 'aarch64' else BUILD / 'golden'
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    tiny = directory / 'tiny'
    subprocess.run([*arch.compiler, *CFLAGS, '-o', tiny, HERE / 'tiny.c'], check=True)
    code = Code(arch.objdump, tiny)
    kinds = dict(arch.kinds)
    for number in arch.turn:
        addr, _ = code.functions['turn'][number]
        kinds[f'turn_{addr - code.start("turn"):02x}'] = ('run', f'{addr:x}')
    for name in arch.lazy:
        for addr, text in code.functions[name]:
            # What is executed, and is not in front of a call to come.
            if not re.match(r'call|nop|mov +\$|push +%rb', text) or \
                    addr == code.start('kept'):
                kinds[f'{name}_{addr - code.start(name):02x}'] = ('lazy', f'{addr:x}')
    (directory / 'plan').write_text(json.dumps(kinds))
    if arch.name == os.uname().machine:
        record_all(directory)
    else:
        record_in_machine(directory)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    tiny.chmod(0o644)
    for kind in kinds:
        sample = (directory / f'{kind}.sample').read_bytes()
        pc, = struct.unpack_from('<Q', sample, 48 + 8 * (16 if arch.name == 'x86_64' else 32))
        (out / f'{kind}.sample').write_bytes(sample)
        (out / f'{kind}.frames').write_text('\n'.join([*frames(arch, code, kind, pc), '']))
    for name in ('tiny', 'maps'):
        shutil.copy(directory / name, out / name)


def main():
    if sys.argv[1:2] == ['--here']:
        record_here(ROOT / sys.argv[2])
        return
    for arch in (X86(), Aarch64()):
        if arch.name in (sys.argv[1:] or ['x86_64', 'aarch64']):
            make(arch, HERE / arch.name)


if __name__ == '__main__':
    main()
