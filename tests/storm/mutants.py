"""Mutated ELF files: copies of real ones in which some fields of headers, tables and
sections have unlikely values. The mutator knows the formats, so that most copies are
read beyond the first check.

A Base is a real file; mutate() makes a Mutant of it. What is mutated, and how, comes
from the random generator alone.
"""

import dataclasses
import lzma
import struct
import zlib

import elf

SHT_NOTE, SHT_NOBITS, SHT_SYMTAB, SHT_DYNSYM = 7, 8, 2, 11
SHF_ALLOC, SHF_COMPRESSED = 2, 1 << 11
ELFCOMPRESS_ZLIB = 1
PAGE = 4096

# Offset in the header, and struct's code.
EHDR = {'e_ident[5]': (5, 'B'), 'e_type': (16, 'H'), 'e_machine': (18, 'H'),
        'e_phoff': (32, 'Q'), 'e_shoff': (40, 'Q'), 'e_ehsize': (52, 'H'),
        'e_phentsize': (54, 'H'), 'e_phnum': (56, 'H'), 'e_shentsize': (58, 'H'),
        'e_shnum': (60, 'H'), 'e_shstrndx': (62, 'H')}
PHDR = {'p_type': (0, 'I'), 'p_flags': (4, 'I'), 'p_offset': (8, 'Q'),
        'p_vaddr': (16, 'Q'), 'p_filesz': (32, 'Q'), 'p_memsz': (40, 'Q'),
        'p_align': (48, 'Q')}
SHDR = {'sh_name': (0, 'I'), 'sh_type': (4, 'I'), 'sh_flags': (8, 'Q'),
        'sh_addr': (16, 'Q'), 'sh_offset': (24, 'Q'), 'sh_size': (32, 'Q'),
        'sh_link': (40, 'I'), 'sh_info': (44, 'I'), 'sh_addralign': (48, 'Q'),
        'sh_entsize': (56, 'Q')}
SYMBOL = {'st_name': (0, 'I'), 'st_info': (4, 'B'), 'st_shndx': (6, 'H'),
          'st_value': (8, 'Q'), 'st_size': (16, 'Q')}
NOTE = {'n_namesz': (0, 'I'), 'n_descsz': (4, 'I'), 'n_type': (8, 'I')}
CHDR = {'ch_type': (0, 'I'), 'ch_size': (8, 'Q'), 'ch_addralign': (16, 'Q')}
# Of a unit of .debug_line in version 5; that of version 4 has some of these 2 bytes
# earlier.
LINE_HEADER = {'unit_length': (0, 'I'), 'version': (4, 'H'), 'address_size': (6, 'B'),
               'segment_selector_size': (7, 'B'), 'header_length': (8, 'I'),
               'minimum_instruction_length': (12, 'B'), 'maximum_operations': (13, 'B'),
               'line_base': (15, 'B'), 'line_range': (16, 'B'), 'opcode_base': (17, 'B'),
               'directory_formats': (30, 'B')}
UNIT_HEADER = {'unit_length': (0, 'I'), 'version': (4, 'H'), 'unit_type': (6, 'B'),
               'address_size': (7, 'B'), 'abbrev_offset': (8, 'I')}
HDR_HEADER = {'version': (0, 'B'), 'eh_frame_ptr_enc': (1, 'B'), 'fde_count_enc': (2, 'B'),
              'table_enc': (3, 'B'), 'eh_frame_ptr': (4, 'I'), 'fde_count': (8, 'I')}
GO_HEADER = {'magic': (0, 'I'), 'quantum': (6, 'B'), 'pointer': (7, 'B'),
             'functions': (8, 'Q'), 'files': (16, 'Q'), 'text': (24, 'Q'),
             'names': (32, 'Q'), 'units': (40, 'Q'), 'file_table': (48, 'Q'),
             'pc_values': (56, 'Q'), 'function_table': (64, 'Q')}

# DW_CFA_*: set_loc, advance_loc4, remember_state, restore_state, def_cfa,
# def_cfa_expression, expression, val_expression, GNU_args_size, and others.
CFA = (1, 4, 5, 6, 8, 9, 0x0a, 0x0b, 0x0c, 0x0f, 0x10, 0x15, 0x16, 0x2d, 0x2e, 0x2f, 0x3f,
       0x40, 0x85, 0xc5)
# DW_FORM_*, with those of GNU's split units and of supplementary files.
FORMS = tuple(range(1, 0x2d))
ATTRIBUTES = (0x01, 0x02, 0x03, 0x10, 0x11, 0x12, 0x31, 0x47, 0x55, 0x58, 0x59, 0x6e, 0x72,
              0x73, 0x74, 0x76)
LEB_MAX = b'\xff' * 9 + b'\x01'
LEB_ENDLESS = b'\x80' * 24

NAMES = ('.text', '.eh_frame', '.eh_frame_hdr', '.debug_frame', '.debug_info',
         '.debug_abbrev', '.debug_line', '.debug_str', '.gnu_debugdata', '.gnu_debuglink',
         '.note.gnu.build-id', '.gopclntab', '.go.buildinfo')


def number(rng, bits, old, size):
    """Returns an unlikely value for a field of so many bits in a file of this size."""
    power = 1 << rng.randrange(bits)
    value = rng.choice((0, 1, -1, old + 1, old - 1, old * 2, old ^ power, power, power - 1,
                        power + 1, -power, size, size - 1, size + 1, size - old, old + PAGE,
                        rng.getrandbits(bits), rng.randrange(64)))
    return value & ((1 << bits) - 1)


def leb_end(data, at):
    """Returns the offset after a LEB128 number."""
    while at < len(data) and data[at] & 0x80:
        at += 1
    return at + 1


class Base:
    """A real file. call: the name of a function that the target calls, if the bytes of
    its segment stay. runs: the file is executed, so all that the kernel, the dynamic
    linker and the program read stays. debug: the Base of its separate debug file, to
    which .gnu_debuglink leads."""

    def __init__(self, name, data, call='', runs=False, debug=None):
        self.name, self.data, self.debug, self.runs = name, bytes(data), debug, runs
        self.elf = elf.Elf(self.data)
        self.phoff, self.shoff = struct.unpack_from('<QQ', data, 32)
        self.code = next((s for s in self.elf.loads if s.flags & elf.PF_X), None)
        symbols = list(elf.read_symbols(self.elf))
        self.call = next((v for v, _, n in symbols if n == call), 0)
        self.functions = [(v, n) for v, n, _ in symbols if self.code and n > 0 and
                          self.code.vaddr <= v < self.code.vaddr + self.code.filesz]
        self.keep = []
        if self.call and self.code:
            self.keep.append((self.code.offset, self.code.offset + self.code.filesz))
        if runs:
            self.keep += [(0, 40), (48, 58), (self.phoff, self.phoff +
                                              56 * len(self.elf.segments))]
            self.keep += [(s.offset, s.offset + s.size) for s in self.elf.sections
                          if s.flags & SHF_ALLOC and s.type not in (SHT_NOTE, SHT_NOBITS) and
                          not s.name.startswith('.eh_frame')]

    def pcs(self, rng, n):
        """Returns n addresses within the code, most of them within functions."""
        found = []
        for _ in range(n):
            start, size = self.code.vaddr, self.code.filesz
            if self.functions and rng.random() < 0.9:
                start, size = rng.choice(self.functions)
            found.append(start + rng.randrange(1, max(2, size)))
        return found


@dataclasses.dataclass
class Mutant:
    name: str
    base: Base
    data: bytes
    what: list  # of texts: what was mutated
    debug: bytes = b''  # its debug file, for .gnu_debuglink


class Copy:
    """The copy of a file while it is mutated."""

    def __init__(self, base, rng):
        self.base, self.rng = base, rng
        self.data = bytearray(base.data)
        self.what = []

    def write(self, at, data, what):
        """Overwrites bytes, unless some of them have to stay."""
        end = at + len(data)
        if at < 0 or end > len(self.data) or \
                any(at < e and end > s for s, e in self.base.keep):
            return
        self.data[at:end] = data
        self.what.append(what)

    def set_field(self, fields, at, of):
        name, (offset, code) = self.rng.choice(list(fields.items()))
        at += offset
        if at + struct.calcsize(code) > len(self.data):
            return
        old, = struct.unpack_from('<' + code, self.data, at)
        value = number(self.rng, 8 * struct.calcsize(code), old, len(self.data))
        self.write(at, struct.pack('<' + code, value), f'{of} {name}={value:#x}')

    # Headers.

    def header(self):
        self.set_field(EHDR, 0, 'ELF header')

    def program_header(self):
        n = self.rng.randrange(len(self.base.elf.segments))
        self.set_field(PHDR, self.base.phoff + 56 * n, f'segment {n}')

    def choose(self, condition=lambda s: True):
        found = [s for s in self.base.elf.sections if condition(s)]
        return self.rng.choice(found) if found else None

    def header_at(self, section):
        return self.base.shoff + 64 * self.base.elf.sections.index(section)

    def section_header(self):
        s = self.choose(lambda s: self.rng.random() < 0.3 or is_read(s))
        if s:
            self.set_field(SHDR, self.header_at(s), f'section {s.name}')

    def flags(self):
        """A section becomes compressed, or has no contents, or another type."""
        s = self.choose(is_read)
        if not s:
            return
        at = self.header_at(s)
        if self.rng.random() < 0.5:
            self.write(at + 8, struct.pack('<Q', s.flags ^ SHF_COMPRESSED),
                       f'section {s.name} compressed or not')
        else:
            kind = self.rng.choice((SHT_NOBITS, SHT_NOTE, SHT_SYMTAB, SHT_DYNSYM, 3, 1, 0))
            self.write(at + 4, struct.pack('<I', kind), f'section {s.name} type {kind}')

    def rename(self):
        """A section gets the name of another one, or that of an old compressed one."""
        s, other = self.choose(is_read), self.choose(is_read)
        if not s:
            return
        at = self.header_at(s)
        if self.rng.random() < 0.5:
            self.write(at, struct.pack('<I', other.name_at), f'section {s.name} is {other.name}')
            return
        names = [x for x in self.base.elf.sections if x.name == '.shstrtab']
        name = self.rng.choice(NAMES + ('.zdebug_info', '.zdebug_line')).encode() + b'\0'
        if names:
            self.write(names[0].offset + s.name_at, name, f'section {s.name} is {name}')

    def truncate(self):
        least = max([e for _, e in self.base.keep] + [64])
        if least < len(self.data):
            del self.data[self.rng.randrange(least, len(self.data)):]
            self.what.append(f'truncated to {len(self.data)}')

    def move(self):
        """A section is elsewhere in the file: its contents are those of another."""
        s, other = self.choose(is_read), self.choose(is_read)
        if s:
            self.write(self.header_at(s) + 24, struct.pack('<QQ', other.offset, other.size),
                       f'section {s.name} has the contents of {other.name}')

    # Contents.

    def contents(self):
        found = [s for s in self.base.elf.sections
                 if is_read(s) and s.type != SHT_NOBITS and s.size > 0]
        if not found:
            return
        s, = self.rng.choices(found, [5 if s.name in Content.OF_NAME else 1 for s in found])
        raw = bytes(self.data[s.offset:s.offset + s.size])
        unpacked, pack = unpack(s, raw)
        if pack and self.rng.random() < 0.6:
            content = Content(bytearray(unpacked), s, self.rng)
            content.mutate()
            self.what += [f'in {w}' for w in content.what]
            self.replace(s, pack(bytes(content.data)))
        else:
            content = Content(bytearray(raw), s, self.rng)
            content.mutate()
            self.write(s.offset, bytes(content.data[:s.size]), '; '.join(content.what))

    def replace(self, section, data):
        """Puts new contents behind the file's end."""
        at = self.header_at(section)
        self.write(at + 24, struct.pack('<QQ', len(self.data), len(data)),
                   f'section {section.name} has {len(data)} bytes')
        self.data += data

    MUTATIONS = {header: 1, program_header: 2, section_header: 5, flags: 3, rename: 2,
                 move: 2, truncate: 1, contents: 24}

    def mutate(self):
        while not self.what:
            for _ in range(self.rng.choice((1, 1, 1, 2, 2, 3, 8))):
                change, = self.rng.choices(list(self.MUTATIONS), self.MUTATIONS.values())
                change(self)


def is_read(section):
    """Returns true for sections that the profiler reads."""
    return section.name.startswith(('.debug_', '.zdebug_', '.eh_frame', '.note', '.symtab',
                                    '.strtab', '.dynsym', '.dynstr', '.gnu_debug', '.gopclntab',
                                    '.go.buildinfo', '.shstrtab'))


def unpack(section, raw):
    """Returns the unpacked contents of a section, and the function that packs others in
    the same way; (b'', None) if it is not packed in a way that Python can read."""
    try:
        if section.name == '.gnu_debugdata':
            return lzma.decompress(raw), lambda x: lzma.compress(x, preset=0)
        if section.flags & SHF_COMPRESSED and raw[0] == ELFCOMPRESS_ZLIB:
            return zlib.decompress(raw[24:]), lambda x: \
                raw[:8] + struct.pack('<Q', len(x)) + raw[16:24] + zlib.compress(x, 1)
        if section.name.startswith('.zdebug_'):
            return zlib.decompress(raw[12:]), lambda x: \
                b'ZLIB' + struct.pack('>Q', len(x)) + zlib.compress(x, 1)
    except (zlib.error, lzma.LZMAError, IndexError):
        # An earlier mutation was in there.
        pass
    return b'', None


class Content:
    """The contents of a section while they are mutated."""

    def __init__(self, data, section, rng):
        self.data, self.section, self.rng = data, section, rng
        self.name = section.name.replace('.zdebug_', '.debug_')
        self.what = []

    def write(self, at, data, what):
        if 0 <= at < len(self.data):
            data = data[:len(self.data) - at]
            self.data[at:at + len(data)] = data
            self.what.append(f'{self.section.name}+{at:#x}: {what}')

    def somewhere(self):
        return self.rng.randrange(len(self.data))

    def field(self, fields, at):
        name, (offset, code) = self.rng.choice(list(fields.items()))
        size = struct.calcsize(code)
        if at + offset + size <= len(self.data):
            old, = struct.unpack_from('<' + code, self.data, at + offset)
            value = number(self.rng, 8 * size, old, len(self.data))
            self.write(at + offset, struct.pack('<' + code, value), f'{name}={value:#x}')

    # Of any section.

    def some_bytes(self):
        for _ in range(self.rng.choice((1, 1, 2, 8))):
            self.write(self.somewhere(), bytes((self.rng.getrandbits(8),)), 'a byte')

    def some_number(self):
        size = self.rng.choice((2, 4, 8))
        at = self.somewhere() // size * size
        old = int.from_bytes(self.data[at:at + size], 'little')
        value = number(self.rng, 8 * size, old, len(self.data))
        self.write(at, value.to_bytes(size, 'little'), f'{size} bytes')

    def leb(self):
        self.write(self.somewhere(), self.rng.choice((LEB_MAX, LEB_ENDLESS)), 'LEB128')

    def block(self):
        n = self.rng.randrange(1, 200)
        at = self.somewhere()
        self.write(self.somewhere(), bytes(self.data[at:at + n]), 'a copy of others')

    def fill(self):
        byte = self.rng.choice((b'\0', b'\xff', b'\x80', b'\1'))
        self.write(self.somewhere(), byte * self.rng.randrange(1, 2000), f'{byte} repeated')

    # Of one format.

    def records(self):
        """Returns the offsets of length-prefixed records: of CFI, or of units."""
        at, found = 0, []
        while at + 8 <= len(self.data) and len(found) < 10000:
            n = int.from_bytes(self.data[at:at + 4], 'little')
            found.append(at)
            if n == 0 or n >= 0xfffffff0:
                break
            at += 4 + n
        return found or [0]

    def cfi(self):
        at = self.rng.choice(self.records())
        n = int.from_bytes(self.data[at:at + 4], 'little')
        inside = at + 8 + self.rng.randrange(1, max(2, min(n, 4096)))
        what = self.rng.randrange(8)
        if what == 0:
            self.field({'length': (0, 'I'), 'CIE pointer': (4, 'I')}, at)
        elif what == 1:
            self.write(at + 9, bytes((self.rng.choice(b'zPLRSBeh\0\1'),)), 'augmentation')
        elif what == 2:
            self.write(inside, bytes(self.rng.choices(CFA, k=self.rng.choice((1, 4)))),
                       'instructions')
        elif what == 3:
            # DW_CFA_def_cfa_expression or a register's, with operations.
            ops = bytes(self.rng.getrandbits(8) for _ in range(8))
            self.write(inside, bytes((self.rng.choice((0x0f, 0x10, 0x16)), 8)) + ops,
                       'an expression')
        elif what == 4:
            self.write(inside, LEB_MAX, 'LEB128')
        elif what == 5:
            self.write(inside, bytes((self.rng.choice((5, 6, 7, 8, 9, 0x0c, 0x0d, 0x11, 0x14)),)) +
                       self.rng.choice((LEB_MAX, b'\xff\x7f', b'\xff\xff\x03')), 'a register')
        elif what == 6:
            self.write(inside, bytes((self.rng.choice((0x0a, 0x41, 0x0b)),)) *
                       self.rng.choice((20, 300)), 'states, or rows')
        else:
            self.field({'start': (8, 'I'), 'size': (12, 'I'), 'augmentation size': (16, 'B')},
                       at)

    def table_of_cfi(self):
        if self.rng.random() < 0.5:
            self.field(HDR_HEADER, 0)
        else:
            self.field({'start': (0, 'I'), 'FDE': (4, 'I')}, 12 + self.somewhere() // 8 * 8)

    def symbol(self):
        self.field(SYMBOL, self.somewhere() // 24 * 24)

    def note(self):
        self.field(NOTE, 0)

    def abbreviation(self):
        forms, at = [], 0
        while at < len(self.data) and self.data[at]:
            at = leb_end(self.data, leb_end(self.data, at)) + 1
            while at + 1 < len(self.data):
                form = leb_end(self.data, at)
                forms.append((at, form))
                if self.data[at:form + 1] == b'\0\0':
                    at = form + 1
                    break
                implicit = self.data[form:form + 1] == b'\x21'
                at = leb_end(self.data, form)
                if implicit:
                    at = leb_end(self.data, at)
        if not forms:
            self.some_bytes()
            return
        for _ in range(self.rng.choice((1, 1, 2, 5))):
            attribute, form = self.rng.choice(forms)
            if self.rng.random() < 0.7:
                self.write(form, bytes((self.rng.choice(FORMS),)), 'form')
            else:
                self.write(attribute, bytes((self.rng.choice(ATTRIBUTES),)), 'attribute')

    def line_table(self):
        at = self.rng.choice(self.records())
        what = self.rng.random()
        if what < 0.4:
            self.field(LINE_HEADER, at)
        elif what < 0.6:
            # Many directories: with no form, or with forms that have no bytes.
            forms = self.rng.choice((b'\0', b'\1\1\x19', b'\1\1\x21', b'\2\1\x0b\2\x0b'))
            self.write(at + 30, forms + self.rng.choice((LEB_MAX, b'\xff\xff\xff\x7f')),
                       'directories')
        else:
            ops = bytes(self.rng.randrange(14) for _ in range(self.rng.choice((1, 3, 20))))
            self.write(at + 18 + self.somewhere() % max(1, len(self.data) - at), ops, 'opcodes')

    def unit(self):
        at = self.rng.choice(self.records())
        if self.rng.random() < 0.3:
            self.field(UNIT_HEADER, at)
        else:
            # A small number: a code of an abbreviation, or a reference within the unit.
            size = self.rng.choice((1, 2, 4))
            self.write(self.somewhere(), self.rng.randrange(1 << 7 if size == 1 else 1 << 10)
                       .to_bytes(size, 'little'), 'a small number')

    def compressed(self):
        self.field(CHDR, 0)

    def nested(self):
        """Mutates an ELF file in a section."""
        try:
            inner = Copy(Base('', self.data), self.rng)
            inner.mutate()
        except (ValueError, struct.error, IndexError, OverflowError):
            # An earlier mutation was in there.
            self.some_bytes()
            return
        self.data = inner.data
        self.what += inner.what

    def go(self):
        if self.rng.random() < 0.4:
            self.field(GO_HEADER, 0)
            return
        words = struct.unpack_from('<8Q', self.data, 8)
        at = self.rng.choice(words[3:])
        if 0 < at < len(self.data):
            self.write(at + self.rng.randrange(1 << 12),
                       self.rng.getrandbits(32).to_bytes(4, 'little'), 'a table of Go')

    OF_ANY = {some_bytes: 2, some_number: 3, leb: 1, block: 1, fill: 1}
    OF_NAME = {'.eh_frame': cfi, '.debug_frame': cfi, '.eh_frame_hdr': table_of_cfi,
               '.symtab': symbol, '.dynsym': symbol, '.debug_abbrev': abbreviation,
               '.debug_line': line_table, '.debug_info': unit, '.gnu_debugdata': nested,
               '.gopclntab': go}

    def mutate(self):
        own = self.OF_NAME.get(self.name)
        if self.name.startswith('.note'):
            own = Content.note
        if self.section.flags & SHF_COMPRESSED and self.data[:4] in (b'\1\0\0\0', b'\2\0\0\0'):
            own = Content.compressed
        for _ in range(self.rng.choice((1, 1, 2, 6))):
            if not self.data:
                return
            if own and self.rng.random() < 0.7:
                own(self)
            else:
                change, = self.rng.choices(list(self.OF_ANY), self.OF_ANY.values())
                change(self)


LINK_NAME = b'00000000.debug\0\0'  # as objcopy writes it, with its padding


def mutate(base, name, rng):
    """Returns a Mutant. For a base with a debug file, this or the debug file is mutated,
    and .gnu_debuglink leads to it by a name of its own, NAME.debug (NAME has 8 bytes)."""
    copy = Copy(base, rng)
    if not base.debug:
        copy.mutate()
        return Mutant(name, base, bytes(copy.data), copy.what)
    debug = Copy(base.debug, rng)
    if rng.random() < 0.8:
        debug.mutate()
    else:
        copy.mutate()
    link = base.elf.section('.gnu_debuglink')
    if rng.random() < 0.9 and link.size == len(LINK_NAME) + 4:
        copy.write(link.offset, name.encode() + b'.debug\0\0' +
                   struct.pack('<I', zlib.crc32(debug.data)), '')
    return Mutant(name, base, bytes(copy.data), [w for w in copy.what + debug.what if w],
                  bytes(debug.data))


def write(path, data):
    """Writes a file without blocks for pages of zeros."""
    with open(path, 'wb') as file:
        for at in range(0, len(data), PAGE):
            page = data[at:at + PAGE]
            if page.strip(b'\0'):
                file.seek(at)
                file.write(page)
        file.truncate(len(data))
