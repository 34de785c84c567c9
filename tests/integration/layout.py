"""The addresses of the ELF files in the memory of a living process. Read from
/proc/PID/maps and the files' program headers, to be compared with the contents
of a chunk. Made while the process lives; keeps the files' bytes.
"""

import bisect
import os
import re

from elf import Elf

# A call instruction, which is right before a return address. Direct; or
# indirect, with and without prefixes, where the middle bits of ModRM are 2.
CALL = re.compile(
    rb'\xe8.{4}'
    rb'|[\x40-\x4f\x3e\x2e]{0,2}\xff(?:[\x10-\x13\x16-\x17\xd0-\xd7]'
    rb'|\x14.|[\x50-\x53\x55-\x57].|\x54..|\x15.{4}'
    rb'|[\x90-\x93\x95-\x97].{4}|\x94.{5})', re.S)
# mov $15, %rax; syscall. aarch64: mov x8, #139; svc #0
SIGRETURN = bytes.fromhex('681180d2010000d4' if os.uname().machine == 'aarch64'
                          else '48c7c00f0000000f05')
CALL_BYTES_MAX = 9
# What the server subtracts from the address of a caller (lib/unwind/cpu.h: CPU_PC_STEP).
PC_STEP = 4 if os.uname().machine == 'aarch64' else 1


class Mapping:
    def __init__(self, start, end, path, elf, bias):
        self.start, self.end, self.path = start, end, path
        self.elf, self.bias = elf, bias

    @property
    def image(self):
        """Returns the correct (image_addr, image_vmaddr, image_size,
        debug_id)."""
        return (self.bias + self.elf.vmaddr, self.elf.vmaddr, self.elf.size,
                self.elf.debug_id)


class Layout:
    def __init__(self, pid):
        self.pid = pid
        self.exe = os.readlink(f'/proc/{pid}/exe')
        self.mappings = []
        files = {}
        with open(f'/proc/{pid}/maps') as f:
            lines = f.read().splitlines()
        for line in lines:
            fields = line.split(None, 5)
            path = fields[5] if len(fields) == 6 else ''
            if 'x' not in fields[1] or not re.match(r'/|\[vdso\]', path):
                continue
            start, end = (int(a, 16) for a in fields[0].split('-'))
            if path not in files:
                files[path] = self.read(path, start, end)
            elf = files[path]
            bias = elf.bias(start, int(fields[2], 16)) if elf else None
            if bias is not None:
                self.mappings.append(Mapping(start, end, path, elf, bias))
        self.starts = [m.start for m in self.mappings]

    def read(self, path, start, end):
        if path == '[vdso]':
            with open(f'/proc/{self.pid}/mem', 'rb') as f:
                f.seek(start)
                data = f.read(end - start)
        else:
            # The mapped file itself, even if its name now belongs to another.
            # For root only.
            mapped = f'/proc/{self.pid}/map_files/{start:x}-{end:x}'
            with open(mapped if os.geteuid() == 0 else path, 'rb') as f:
                data = f.read()
        try:
            return Elf(data)
        except ValueError:
            return None

    def at(self, address):
        i = bisect.bisect_right(self.starts, address) - 1
        if i >= 0 and address < self.mappings[i].end:
            return self.mappings[i]
        return None

    def is_trampoline(self, address):
        """Returns true if it is PC_STEP after the start of the code that ends
        a signal handler, whose name is in no .dynsym."""
        m = self.at(address - PC_STEP)
        return m is not None and m.elf.read(
            address - PC_STEP - m.bias, len(SIGRETURN)) == SIGRETURN

    def follows_call(self, address):
        """Returns true if a call is right before address; None: not known."""
        m = self.at(address - 1)
        if m is None:
            return None
        before = m.elf.read(address - CALL_BYTES_MAX - m.bias, CALL_BYTES_MAX)
        if os.uname().machine == 'aarch64':
            # bl; blr, and its forms that check a signature.
            word = int.from_bytes(before[-4:], 'little')
            return word >> 26 == 0x25 or word & 0xfefff000 == 0xd63f0000
        return any(CALL.fullmatch(before, i) for i in range(len(before)))
