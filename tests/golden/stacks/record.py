#!/usr/bin/python3
"""Makes the recorded samples of tests/golden/stacks anew.

usage: record.py [x86_64|aarch64]...

Into x86_64/ and aarch64/ go: tiny, the program (tiny.c); maps, its memory; for
each kind of sample KIND.sample, the record as capture writes it to the ring
(lib/capture/sample.h); and KIND.frames, what its stack is: not by an unwinder,
but by which functions the program has called, and where the disassembly has
those calls. tests/unit/unwind/check_recorded.c compares.

x86_64 is recorded by this project's capture (build/oracle/record). The other
program runs in qemu-user, and is recorded by qemu's server for gdb, at a
breakpoint. Its compiler is aarch64-linux-gnu-gcc, or what CC_AARCH64 says.
"""

import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get('BUILD', HERE.parents[2] / 'build'))

CFLAGS = ('-O1 -g0 -std=gnu11 -nostdlib -static -no-pie -fno-pie '
          '-ffreestanding -fno-stack-protector -fno-stack-clash-protection '
          '-fasynchronous-unwind-tables -Wl,-z,noseparate-code '
          '-Wl,-z,max-page-size=4096 -Wl,--build-id=none').split()

ADDR_NO_RANDOMIZE = 0x0040000
RECORD_SAMPLE = 3
ARCH_AARCH64 = 2
STACK_MAX = 64 << 10


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

    def record(self, argument, how, path):
        """Returns the maps."""
        process = subprocess.Popen(
            ['./tiny', argument], stdin=subprocess.PIPE, env={},
            preexec_fn=lambda: libc_personality(ADDR_NO_RANDOMIZE))
        try:
            if isinstance(how, str):
                # Blocked in read(2), which is call 0.
                call = pathlib.Path(f'/proc/{process.pid}/syscall')
                while not call.read_text().startswith('0 '):
                    pass
            subprocess.run([BUILD / 'oracle/record', str(process.pid), path,
                            how if isinstance(how, str) else f'{how:x}'],
                           check=True)
            text = pathlib.Path(f'/proc/{process.pid}/maps').read_text()
            # Which file of which machine does not matter.
            return re.sub(r' [0-9a-f:]+ \d+ +/.*', ' 00:01 1 /tiny', text)
        finally:
            process.kill()
            process.wait()


def libc_personality(value):
    import ctypes
    if ctypes.CDLL(None).personality(ctypes.c_ulong(value)) < 0:
        raise OSError('personality')


class Gdb:
    """As much of the remote protocol as it takes."""

    def __init__(self, path):
        while True:
            self.socket = socket.socket(socket.AF_UNIX)
            try:
                self.socket.connect(path)
                break
            except (FileNotFoundError, ConnectionRefusedError):
                self.socket.close()
        self.file = self.socket.makefile('rb')

    def ask(self, text):
        data = text.encode()
        self.socket.sendall(b'$%s#%02x' % (data, sum(data) & 255))
        while self.file.read(1) != b'$':
            pass
        answer = b''
        while not answer.endswith(b'#'):
            answer += self.file.read(1)
        self.file.read(2)
        self.socket.sendall(b'+')
        return answer[:-1].decode()

    def memory(self, addr, size):
        found = self.ask(f'm{addr:x},{size:x}')
        return b'' if found.startswith('E') else bytes.fromhex(found)


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

    def record(self, argument, how, path):
        # Of a thread that is looked at without a stop these are known.
        known = 1 << 31 | 1 << 32 if how == 'blocked' else (1 << 33) - 1
        if isinstance(how, str):
            how = Code(self.objdump, 'tiny').behind('leaf_wait', self.system)
        qemu = subprocess.Popen(
            [shutil.which('qemu-aarch64'), '-cpu', 'max', '-g', 'gdb',
             './tiny', argument], stdin=subprocess.DEVNULL, env={})
        try:
            gdb = Gdb('gdb')
            gdb.ask('qSupported')
            gdb.ask(f'Z0,{how:x},4')
            # A signal of the program's own is a stop, too; it is handed on.
            stop = gdb.ask('c')
            while (pc := self.registers(gdb)[32]) != how:
                if not stop.startswith('T'):
                    raise OSError(f'{stop} at {pc:#x}')
                stop = gdb.ask(f'C{stop[1:3]}')
            return self.write(gdb, known, path)
        finally:
            qemu.kill()
            qemu.wait()
            os.unlink('gdb')

    def registers(self, gdb):
        return struct.unpack('<33Q', bytes.fromhex(gdb.ask('g'))[:33 * 8])

    def write(self, gdb, known, path):
        registers = self.registers(gdb)
        sp, stack = registers[31], b''
        while len(stack) < STACK_MAX and (
                more := gdb.memory(sp + len(stack), min(
                    1024, 4096 - (sp + len(stack)) % 4096))):
            stack += more
        stack += bytes(-len(stack) % 8)
        body = struct.pack('<IIQ33QQII3Q', 1, ARCH_AARCH64, known, *registers,
                           sp, len(stack), 0, *[0] * 3) + stack
        head = struct.pack('<IIIIQQ', 32 + len(body), RECORD_SAMPLE, 0, 1, 0, 0)
        pathlib.Path(path).write_bytes(head + body)
        top = sp + len(stack)
        # qemu's own maps are none of the program's: by its program headers.
        return (f'00400000-00401000 r-xp 00000000 00:01 1 /tiny\n'
                f'00401000-00402000 rw-p 00000000 00:00 0 \n'
                f'{sp & -4096:x}-{top + 4095 & -4096:x} rw-p 00000000 00:00 0 '
                f'[stack]\n')


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
    out.mkdir(exist_ok=True)
    for old in out.iterdir():
        old.unlink()
    subprocess.run([*arch.compiler, *CFLAGS, '-o', out / 'tiny',
                    HERE / 'tiny.c'], check=True)
    (out / 'tiny').chmod(0o644)
    with open('tiny', 'wb') as file:
        file.write((out / 'tiny').read_bytes())
    os.chmod('tiny', 0o755)
    code = Code(arch.objdump, 'tiny')
    kinds = dict(arch.kinds)
    for number in arch.turn:
        addr, _ = code.functions['turn'][number]
        kinds[f'turn_{addr - code.start("turn"):02x}'] = ('run', addr)
    for name in arch.lazy:
        for addr, text in code.functions[name]:
            # What is executed, and is not in front of a call to come.
            if not re.match(r'call|nop|mov +\$|push +%rb', text) or \
                    addr == code.start('kept'):
                kinds[f'{name}_{addr - code.start(name):02x}'] = ('lazy', addr)
    for kind, (argument, how) in kinds.items():
        path = out / f'{kind}.sample'
        maps = arch.record(argument, how, path)
        pc, = struct.unpack_from('<Q', path.read_bytes(),
                                 48 + 8 * (16 if arch.name == 'x86_64' else 32))
        (out / f'{kind}.frames').write_text(
            '\n'.join([*frames(arch, code, kind, pc), '']))
        (out / 'maps').write_text(maps)


def main():
    wanted = sys.argv[1:] or ['x86_64', 'aarch64']
    for arch in (X86(), Aarch64()):
        if arch.name in wanted:
            with tempfile.TemporaryDirectory() as directory:
                os.chdir(directory)
                make(arch, HERE / arch.name)


if __name__ == '__main__':
    main()
