"""Writes executables that still run, with sections that are bombs: a part of
bombs.py.

The program is copied whole, and a new table of sections is written behind it. The
kernel and the dynamic linker read program headers only, so they do not notice.
"""

import lzma
import struct
import zlib

PAGE = 4096

PT_NULL, PT_NOTE, PT_GNU_EH_FRAME = 0, 4, 0x6474e550
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB = 1, 2, 3
SHF_COMPRESSED = 1 << 11
ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD = 1, 2
STT_FUNC = 2

SHDR = '<IIQQQQIIQQ'
PHDRS_AT, SECTIONS_AT = 32, 40

DW_CFA_advance_loc, DW_CFA_same_value = 0x40, 0x08
DW_CFA_remember_state, DW_CFA_restore_state = 0x0a, 0x0b
DW_CFA_def_cfa, DW_CFA_def_cfa_expression, DW_CFA_expression = 0x0c, 0x0f, 0x10
DW_CFA_offset = 0x80
# Registers of x86-64: the stack pointer, and the return address.
RSP, RA = 7, 16


class Section:
    """One section. content: bytes; or a number, for a hole in the file of so many
    bytes. size: what the header says, if that is not the content's size. link: the
    name of another section."""

    def __init__(self, name, content, kind=SHT_PROGBITS, flags=0, link='',
                 entry_size=0, size=None, vaddr=0):
        self.name, self.content, self.kind = name, content, kind
        self.flags, self.link, self.entry_size = flags, link, entry_size
        self.vaddr = vaddr
        self.bytes = content if isinstance(content, int) else len(content)
        self.size = self.bytes if size is None else size


def without_phdrs(program, kinds):
    """Returns the program with these program headers made void."""
    program = bytearray(program)
    at, = struct.unpack_from('<Q', program, PHDRS_AT)
    size, n = struct.unpack_from('<HH', program, 54)
    for i in range(n):
        if struct.unpack_from('<I', program, at + i * size)[0] in kinds:
            struct.pack_into('<I', program, at + i * size, PT_NULL)
    return program


def with_note(program, offset, size):
    """Returns the program with its first PT_NOTE leading to this range."""
    program = bytearray(program)
    at, = struct.unpack_from('<Q', program, PHDRS_AT)
    step, n = struct.unpack_from('<HH', program, 54)
    for i in range(n):
        if struct.unpack_from('<I', program, at + i * step)[0] == PT_NOTE:
            struct.pack_into('<QQQQQ', program, at + i * step + 8, offset,
                             0, 0, size, 0)
            break
    return program


def write(path, program, sections):
    """Writes the program with these sections, and no others."""
    sections = [*sections, None]
    names = b'\0'
    for s in sections[:-1]:
        s.name_at = len(names)
        names += s.name.encode() + b'\0'
    names += b'.shstrtab\0'
    sections[-1] = last = Section('.shstrtab', names, SHT_STRTAB)
    last.name_at = len(names) - len('.shstrtab') - 1
    program = bytearray(program)
    at = (len(program) + PAGE - 1) // PAGE * PAGE
    numbers = {s.name: n for n, s in enumerate(sections, 1)}
    table = bytes(struct.calcsize(SHDR))
    for s in sections:
        s.at = at
        table += struct.pack(SHDR, s.name_at, s.kind, s.flags, s.vaddr, at,
                             s.size, numbers.get(s.link, 0), 0, 1,
                             s.entry_size)
        at += (s.bytes + PAGE - 1) // PAGE * PAGE
    struct.pack_into('<Q', program, SECTIONS_AT, at)
    struct.pack_into('<HHH', program, 58, struct.calcsize(SHDR),
                     len(sections) + 1, len(sections))
    with open(path, 'wb') as file:
        file.write(program)
        for s in sections:
            if not isinstance(s.content, int):
                file.seek(s.at)
                file.write(s.content)
        file.seek(at)
        file.write(table)
    path.chmod(0o755)


# What is in sections.

def compressed_header(size, kind=ELFCOMPRESS_ZLIB):
    """The head of a compressed section that claims so many bytes."""
    return struct.pack('<IIQQ', kind, 0, size, 1)


def packed(content):
    """The content of a section of SHF_COMPRESSED, by zlib."""
    return compressed_header(len(content)) + zlib.compress(content, 9)


def symbols(entries):
    """.symtab of (name offset, address, size), all of them functions."""
    return bytes(24) + b''.join(
        struct.pack('<IBBHQQ', name, 1 << 4 | STT_FUNC, 0, 1, value, size)
        for name, value, size in entries)


def leb128(n):
    out = b''
    while True:
        out += bytes([n & 0x7f | (0x80 if n > 0x7f else 0)])
        n >>= 7
        if n == 0:
            return out


def cie():
    """A CIE whose FDEs have absolute addresses of 8 bytes."""
    body = struct.pack('<IB', 0, 1) + b'zR\0' + \
        bytes([1, 0x78, RA, 1, 0, DW_CFA_def_cfa, RSP, 8, DW_CFA_offset | RA, 1])
    body += bytes((4 - len(body)) % 8)
    return struct.pack('<I', len(body)) + body


def fde(at, start, size, program):
    """An FDE at this offset of .eh_frame, whose CIE is at offset 0."""
    body = struct.pack('<IQQB', at + 4, start, size, 0) + program
    body += bytes(-(len(body) + 4) % 8)
    return struct.pack('<I', len(body)) + body


def eh_frame(functions):
    """.eh_frame of (start, size, CFI program)."""
    out = bytearray(cie())
    for start, size, program in functions:
        out += fde(len(out), start, size, program)
    return bytes(out + bytes(4))


def cfa_expression(operations):
    return bytes([DW_CFA_def_cfa_expression]) + leb128(len(operations)) + \
        operations


def return_address_expression(operations):
    return bytes([DW_CFA_expression, RA]) + leb128(len(operations)) + operations


def xz_of_zeros(block, n):
    """xz that unpacks to n blocks of so many zeros each. A block takes a seventh of a
    thousandth of that."""
    data = lzma.compress(bytes(block), check=lzma.CHECK_CRC32, preset=0)
    index_size = (struct.unpack_from('<I', data, len(data) - 8)[0] + 1) * 4
    one = data[12:-12 - index_size]
    # The sizes in the index are those of the block without its padding.
    record = read_index(data[-12 - index_size:-12])
    index = b'\0' + leb128(n) + record * n
    index += bytes(-len(index) % 4)
    index += struct.pack('<I', zlib.crc32(index))
    footer = struct.pack('<I', len(index) // 4 - 1) + data[-4:-2]
    return data[:12] + one * n + index + \
        struct.pack('<I', zlib.crc32(footer)) + footer + b'YZ'


def read_index(index):
    """Returns the only record of an index of xz: two numbers of LEB128."""
    at = 2
    for _ in range(2):
        while index[at] & 0x80:
            at += 1
        at += 1
    return index[2:at]


def xz_with_dictionary(content, code):
    """xz whose header asks for a dictionary of another size: 40 is 4 GB."""
    data = bytearray(lzma.compress(content, preset=0))
    size = (data[12] + 1) * 4
    # The id of LZMA2, the size of its properties, and the dictionary.
    at = data.index(b'\x21\x01', 12)
    data[at + 2] = code
    struct.pack_into('<I', data, 12 + size - 4,
                     zlib.crc32(bytes(data[12:12 + size - 4])))
    return bytes(data)
