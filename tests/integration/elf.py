"""Reads ELF files for the checks: 64 bits, little-endian. Shares no code with
the daemon.
"""

import bisect
import functools
import lzma
import pathlib
import struct
import uuid

PT_LOAD, PT_INTERP, PT_NOTE, PT_GNU_EH_FRAME = 1, 3, 4, 0x6474e550
PF_X = 1
SHT_SYMTAB, SHT_NOTE, SHT_NOBITS, SHT_DYNSYM = 2, 7, 8, 11
SHF_EXECINSTR = 4
NT_GNU_BUILD_ID = 3
STT_NOTYPE, STT_FUNC, STT_GNU_IFUNC = 0, 2, 10
R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT, R_X86_64_IRELATIVE = 6, 7, 37

DEBUG_DIR = pathlib.Path('/usr/lib/debug/.build-id')


class Segment:
    def __init__(self, data, at):
        (self.type, self.flags, self.offset, self.vaddr, _, self.filesz,
         self.memsz, _) = struct.unpack_from('<IIQQQQQQ', data, at)


class Section:
    def __init__(self, data, at):
        (self.name_at, self.type, self.flags, self.addr, self.offset,
         self.size, self.link, _, _, self.entsize) = \
            struct.unpack_from('<IIQQQQIIQQ', data, at)


def c_string(data, at):
    return data[at:data.index(b'\0', at)].decode(errors='replace')


class Elf:
    def __init__(self, data):
        if data[:6] != b'\x7fELF\x02\x01':
            raise ValueError('no 64-bit little-endian ELF file')
        self.data = data
        phoff, shoff = struct.unpack_from('<QQ', data, 32)
        phentsize, phnum, shentsize, shnum, shstrndx = \
            struct.unpack_from('<HHHHH', data, 54)
        self.segments = [Segment(data, phoff + i * phentsize)
                         for i in range(phnum)]
        self.loads = [s for s in self.segments if s.type == PT_LOAD]
        self.sections = []
        # A file in memory, such as the vDSO, may have no sections.
        if shoff and shoff + shnum * shentsize <= len(data):
            self.sections = [Section(data, shoff + i * shentsize)
                             for i in range(shnum)]
        for s in self.sections:
            s.name = c_string(data, self.sections[shstrndx].offset +
                              s.name_at)

    def section(self, name):
        for s in self.sections:
            if s.name == name:
                return s
        return None

    def bytes_of(self, section):
        if section.type == SHT_NOBITS:
            return b''
        return self.data[section.offset:section.offset + section.size]

    @functools.cached_property
    def build_id(self):
        """Returns the build-id of the first note that has one; b'' if none
        has."""
        for s in self.segments:
            if s.type == PT_NOTE:
                found = find_build_id(self.data[s.offset:
                                                s.offset + s.filesz])
                if found:
                    return found
        s = self.section('.note.gnu.build-id')
        return find_build_id(self.bytes_of(s)) if s else b''

    @functools.cached_property
    def debug_id(self):
        code = self.build_id
        if not code:
            # Returns the start of .text, folded into 16 bytes.
            folded = [0] * 16
            for i, b in enumerate(self.bytes_of(self.section('.text'))[:4096]):
                folded[i % 16] ^= b
            code = bytes(folded)
        return str(uuid.UUID(bytes_le=code[:16].ljust(16, b'\0')))

    @property
    def has_interpreter(self):
        return any(s.type == PT_INTERP for s in self.segments)

    @property
    def vmaddr(self):
        return self.loads[0].vaddr

    @property
    def size(self):
        """Returns the size in memory, from the first segment's start to the
        last one's end."""
        return max(s.vaddr + s.memsz for s in self.loads) - self.vmaddr

    def bias(self, map_start, map_offset):
        """Returns the load bias of an executable mapping; None if no segment
        is mapped there."""
        for s in self.loads:
            page_offset = s.offset - s.offset % 4096
            if s.flags & PF_X and \
                    page_offset <= map_offset < s.offset + s.filesz:
                return map_start - map_offset + s.offset - s.vaddr
        return None

    def read(self, vaddr, n):
        """Returns n bytes at vaddr, fewer at the file's end."""
        for s in self.loads:
            if s.vaddr <= vaddr < s.vaddr + s.filesz:
                at = vaddr - s.vaddr + s.offset
                return self.data[at:min(at + n, s.offset + s.filesz)]
        return b''

    def vaddr_of(self, offset):
        for s in self.loads:
            if s.flags & PF_X and s.offset <= offset < s.offset + s.filesz:
                return offset - s.offset + s.vaddr
        return offset

    @functools.cached_property
    def symbols(self):
        """Returns [(start, size, name)] of possible functions, sorted by
        start. They come from the file, from the small table that some
        distributions compress into it, and from its debug file if that is
        installed.
        """
        found = set(read_symbols(self))
        packed = self.section('.gnu_debugdata')
        if packed:
            found.update(read_symbols(
                Elf(lzma.decompress(self.bytes_of(packed)))))
        code = self.build_id.hex()
        debug = DEBUG_DIR / code[:2] / (code[2:] + '.debug')
        if code and debug.exists():
            found.update(read_symbols(Elf(debug.read_bytes())))
        return sorted(found)

    @functools.cached_property
    def symbol_starts(self):
        return [s[0] for s in self.symbols]

    @functools.cached_property
    def largest_symbol(self):
        return max((s[1] for s in self.symbols), default=0)

    @functools.cached_property
    def slots(self):
        """Returns {address of a GOT slot: the names of the function whose address it gets}. A
        function of the file itself that is chosen at run time has those of what chooses it."""
        found = {}
        for name in ('.rela.plt', '.rela.dyn'):
            s = self.section(name)
            if not s:
                continue
            table = self.sections[s.link]
            symbols, strings = (self.bytes_of(t) for t in (table, self.sections[table.link]))
            for at, info, addend in struct.iter_unpack('<QQq', self.bytes_of(s)):
                if info & 0xffffffff in (R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT):
                    found[at] = {c_string(strings, struct.unpack_from(
                        '<I', symbols, (info >> 32) * 24)[0])}
                elif info & 0xffffffff == R_X86_64_IRELATIVE:
                    found[at] = {n for start, _, n in self.symbols if start == addend}
        return found

    @functools.cached_property
    def stubs(self):
        """Returns [(start, end, names)] of the stubs in PLTs that GNU ld made, sorted by start."""
        found = []
        for s in self.sections:
            if s.name not in ('.plt', '.plt.sec', '.plt.got'):
                continue
            code, size = self.bytes_of(s), s.entsize or 16
            for at in range(0, len(code), size):
                jump = code.find(b'\xff\x25', at, at + size)
                if jump < 0 or jump + 6 > len(code):
                    continue
                slot = s.addr + jump + 6 + struct.unpack_from('<i', code, jump + 2)[0]
                if self.slots.get(slot):
                    found.append((s.addr + at, s.addr + at + size,
                                  {name + '@plt' for name in self.slots[slot]}))
        return sorted(found, key=lambda stub: stub[0])

    def stub_at(self, vaddr):
        """Returns (start, end, names) of the stub of a PLT at this address, or None."""
        i = bisect.bisect_right(self.stubs, vaddr, key=lambda stub: stub[0]) - 1
        return self.stubs[i] if i >= 0 and vaddr < self.stubs[i][1] else None

    def are_in_one_function(self, start, vaddr):
        """Returns False if another section or FDE begins above start, at vaddr or before."""
        i = bisect.bisect_right(self.fdes, (vaddr, float('inf'))) - 1
        return not (i >= 0 and self.fdes[i][0] > start) and not any(
            start < s.addr <= vaddr for s in self.sections if s.flags & SHF_EXECINSTR)

    def names_at(self, vaddr):
        """Returns the symbols whose size covers vaddr, and those without a
        size that start at the nearest address before it, in the same function.
        A stub of a PLT has those of what it calls."""
        stub = self.stub_at(vaddr)
        if stub:
            return stub[2], set()
        sized, unsized, unsized_at = set(), set(), None
        i = bisect.bisect_right(self.symbol_starts, vaddr) - 1
        while i >= 0 and vaddr - self.symbol_starts[i] <= max(
                self.largest_symbol, 1 << 16):
            start, size, name = self.symbols[i]
            if start <= vaddr < start + size:
                sized.add(name)
            elif size == 0 and unsized_at in (None, start):
                unsized_at = start
                if self.are_in_one_function(start, vaddr):
                    unsized.add(name)
            i -= 1
        return sized, unsized

    @functools.cached_property
    def fdes(self):
        """Returns [(start, end)] of the functions in .eh_frame, sorted by
        start. Assumes pcrel addresses of 4 bytes, as GNU compilers write them.
        """
        section = self.section('.eh_frame')
        if section:
            return sorted(self.all_fdes(section))
        for s in self.segments:
            # A file in memory has the search table: version 1, with pcrel and
            # datarel numbers of 4 bytes.
            head = self.read(s.vaddr, 12)
            if s.type == PT_GNU_EH_FRAME and head[:4] == b'\1\x1b\x03\x3b':
                n = struct.unpack_from('<I', head, 8)[0]
                return [self.fde(s.vaddr + at) for _, at in struct.iter_unpack(
                    '<ii', self.read(s.vaddr + 12, 8 * n))]
        return []

    def all_fdes(self, section):
        at = section.addr
        while at + 8 <= section.addr + section.size:
            size, cie = struct.unpack('<II', self.read(at, 8))
            if size != 0 and cie != 0:
                yield self.fde(at)
            at += 4 + size

    def fde(self, at):
        """Returns (start, end) of the entry at this address."""
        start, size = struct.unpack_from('<iI', self.read(at, 16), 8)
        return at + 8 + start, at + 8 + start + size

    def fde_start(self, vaddr):
        """Returns the start of the FDE that covers vaddr; None: there is none.
        """
        i = bisect.bisect_right(self.fdes, (vaddr, float('inf'))) - 1
        if i >= 0 and self.fdes[i][0] <= vaddr < self.fdes[i][1]:
            return self.fdes[i][0]
        return None

    def function_at(self, vaddr):
        """Returns (start, a name) of the function at this address; (0, None)
        if there is none."""
        i = bisect.bisect_right(self.symbol_starts, vaddr) - 1
        while i >= 0 and vaddr - self.symbol_starts[i] <= self.largest_symbol:
            start, size, name = self.symbols[i]
            if start <= vaddr < start + size:
                return start, name
            i -= 1
        return 0, None


def find_build_id(notes):
    at = 0
    while at + 12 <= len(notes):
        namesz, descsz, kind = struct.unpack_from('<III', notes, at)
        name_at = at + 12
        desc_at = name_at + (namesz + 3) // 4 * 4
        if kind == NT_GNU_BUILD_ID and notes[name_at:name_at + 4] == b'GNU\0':
            return notes[desc_at:desc_at + descsz]
        at = desc_at + (descsz + 3) // 4 * 4
    return b''


def read_symbols(elf):
    for s in elf.sections:
        if s.type not in (SHT_SYMTAB, SHT_DYNSYM):
            continue
        table = elf.bytes_of(s)
        strings = elf.bytes_of(elf.sections[s.link])
        for name_at, info, _, shndx, value, size in \
                struct.iter_unpack('<IBBHQQ', table):
            kind = info & 15
            if shndx == 0 or name_at == 0 or value == 0 or \
                    kind not in (STT_NOTYPE, STT_FUNC, STT_GNU_IFUNC):
                continue
            yield value, size, c_string(strings, name_at)
