"""Where the other unwinders are wrong, by name.

explain() takes a line of tests/oracle/differ.c and says, for each oracle that
differs, by which of its known faults; None is a difference that nobody has
explained, and with that a fault of ours until it is shown to be one of theirs.
"""

import functools
import itertools
import os
import re
import struct
import subprocess

# mov $15,%rax; syscall
SIGRETURN = bytes.fromhex('48c7c00f0000000f05')
# ror $0x11,%r8: glibc's longjmp makes a pointer of what setjmp has kept
UNMANGLE = bytes.fromhex('49c1c811')
# lea -8(%r10),%rsp, or by another register: gcc's way out of a frame that it has
# aligned
REALIGNED = re.compile(rb'[\x48\x49]\x8d[\x60-\x67]\xf8', re.S)
# mov %rcx,%rsp; pop %rcx; jmp *%rcx: how libgcc goes over to an exception's handler,
# and how far that is from the call that installs it
TO_HANDLER = bytes.fromhex('4889cc59ffe1')
INSTALLING = 144
INSTALLS = re.compile('_Unwind_(RaiseException|Resume|ForcedUnwind|Resume_or_Rethrow)')
SYSCALL = bytes.fromhex('0f05')
# mov $60,%eax or %al; syscall
THREAD_EXIT = re.compile(rb'(\xb8\x3c\0\0\0|\xb0\x3c)\x0f\x05', re.S)
# xor %rdi,%rdi; call; hlt
NEVER_BACK = re.compile(rb'[\x48]?\x31\xff\xe8.{4}\xf4', re.S)

PT_LOAD, PT_GNU_EH_FRAME = 1, 0x6474e550


class Frame:
    def __init__(self, fields):
        (self.addr, self.name, self.offset, self.module, self.at,
         self.guessed) = fields

    def __str__(self):
        where = os.path.basename(self.module) or 'memory'
        guessed = ' guessed' if self.guessed else ''
        return f'{self.addr:#x} {self.name or "?"}+{self.offset:#x} ' \
               f'({where}){guessed}'


class Stack:
    def __init__(self, value):
        self.frames = [Frame(f) for f in value['frames']]
        self.end = value['end']
        self.first = value.get('first')

    def __str__(self):
        return ''.join(f'      {f}\n' for f in self.frames) + \
            f'      ended: {self.end}\n'


@functools.lru_cache(None)
def segments(path):
    """[(type, offset, vaddr, flags)] of an ELF file, [] if it is none."""
    try:
        with open(path, 'rb') as f:
            head = f.read(64)
            if head[:5] != b'\x7fELF\x02':
                return []
            start, = struct.unpack_from('<Q', head, 32)
            size, n = struct.unpack_from('<HH', head, 54)
            f.seek(start)
            table = f.read(size * n)
    except OSError:
        return []
    found = []
    for i in range(n):
        kind, flags, offset, vaddr = struct.unpack_from('<IIQQ', table,
                                                        size * i)
        found.append((kind, offset, vaddr, flags))
    return found


def has_table(path):
    return any(s[0] == PT_GNU_EH_FRAME for s in segments(path))


def is_shifted(path):
    """Text and search table are not as far apart in memory as in the file."""
    table = [v - o for k, o, v, _ in segments(path) if k == PT_GNU_EH_FRAME]
    text = [v - o for k, o, v, f in segments(path) if k == PT_LOAD and f & 1]
    return bool(table) and any(t != table[0] for t in text)


@functools.lru_cache(None)
def has_section(path, name):
    if not segments(path):
        return False
    text = subprocess.run(['readelf', '-SW', path], capture_output=True,
                          text=True, check=False).stdout
    return f'{name} ' in text


def file_bytes(frame, n, before=0):
    """n bytes of the file at what a frame's address is looked up by, and some
    before it.
    """
    for kind, offset, vaddr, flags in segments(frame.module):
        if kind == PT_LOAD and flags & 1 and vaddr + before <= frame.at:
            with open(frame.module, 'rb') as f:
                f.seek(frame.at - before - vaddr + offset)
                return f.read(n + before)
    return b''


@functools.lru_cache(None)
def row_starts(path):
    """Where the rules of its .eh_frame change."""
    text = subprocess.run(['readelf', '--debug-dump=frames-interp', path],
                          capture_output=True, text=True, check=False).stdout
    return {int(a, 16) for a in re.findall(r'^([0-9a-f]{16}) ', text, re.M)}


# Each rule: (ours, theirs) -> bool. theirs.first is the first frame that
# differs; the step that led there is that of the frame before, with the
# registers that the frames before that have left.

def below(ours, theirs):
    return ours.frames[:theirs.first]


def no_search_table(ours, theirs):
    """libunwind looks for CFI by PT_GNU_EH_FRAME only (or in a .debug_frame
    that is not compressed), and without it guesses by rbp."""
    return any(f.module.startswith('/') and segments(f.module) and
               not has_table(f.module) for f in below(ours, theirs))


def shifted_segments(ours, theirs):
    """libunwind takes p_vaddr - p_offset to be the same for text and for
    .eh_frame_hdr; lld gives each segment its own."""
    return any(is_shifted(f.module) for f in below(ours, theirs))


def only_debug_frame(ours, theirs):
    """libunwind, as Debian builds it, does not read .debug_frame."""
    return any(has_section(f.module, '.debug_frame')
               for f in below(ours, theirs))


def only_gopclntab(frame):
    return has_section(frame.module, '.gopclntab') and \
        not has_section(frame.module, '.debug_frame')


def gopclntab(ours, theirs):
    """A Go program without .debug_frame: they do not read Go's own table, and
    go by rbp. That leaves out who has not pushed it yet, and nobody else:
    what they find there has to be among ours, in the same order, up to where
    ours ends."""
    if not any(only_gopclntab(f) for f in below(ours, theirs)):
        return False
    addrs = [f.addr for f in itertools.takewhile(only_gopclntab,
                                                 theirs.frames)]
    rest = iter(f.addr for f in ours.frames)
    return all(a in rest for a in addrs) or \
        ours.end != 'root' and ours.frames[-1].addr in addrs


def vdso(ours, theirs):
    """libunwind finds no CFI in the vDSO, which is no file."""
    return any(f.module == '[vdso]' for f in below(ours, theirs))


def lost_rbx(ours, theirs):
    """libdwfl loses rbx, by which the dynamic linker's lazy binding is
    unwound."""
    return any(re.search(r'/ld-linux|/ld-2', f.module)
               for f in below(ours, theirs))


def is_longjmp(frame):
    """By its name, where libc's own names are known, or by its code."""
    return bool(re.fullmatch('_*longjmp(_chk)?', frame.name)) or \
        not frame.name and UNMANGLE in file_bytes(frame, 96, before=96)


def in_longjmp(ours, theirs):
    """libunwind loses rbp, which is in another register there."""
    return any(is_longjmp(f) for f in below(ours, theirs))


def planted(ours, theirs):
    """A return address that no call has left (makecontext): nobody has CFI
    one before it. Ours is by one greater, so that it is found there."""
    i = theirs.first
    return i < min(len(ours.frames), len(theirs.frames)) and \
        ours.frames[i].addr == theirs.frames[i].addr + 1 and \
        ours.frames[i].offset == 0


def trampoline(ours, theirs):
    """The return from a signal without CFI for it (Go, musl): ours knows it
    by its code, in the middle of its two instructions, too."""
    at, *others = ours.frames[:theirs.first + 1]
    return SIGRETURN in file_bytes(at, 16, before=7) or any(
        re.search('sigreturn|restore_rt', f.name) or
        file_bytes(f, len(SIGRETURN)) == SIGRETURN for f in others)


def stub(ours, theirs):
    """Code without CFI that has pushed nothing (a static executable's PLT,
    the call in clone3, musl's copies): they go on with the caller's caller,
    or nowhere."""
    return any(f.guessed for f in ours.frames[:theirs.first + 1])


def beyond_code(ours, theirs):
    """A return address that lies in no executable memory is no frame; they
    take it for one, and some go on from there."""
    i = theirs.first
    return ours.end != 'root' and len(ours.frames) == i and \
        len(theirs.frames) > i and theirs.frames[i].module == 'unmapped'


def made_code(ours, theirs):
    """In code that a program made, without CFI, they take rbp for a frame
    pointer where the pair that it points to is none."""
    return ours.end == 'no_cfi' and len(ours.frames) == theirs.first and \
        ours.frames[-1].module == ''


def another_stack(ours, theirs):
    """Go's runtime has left a goroutine's stack for the scheduler's: they take
    for its caller what was left there. Or it asks the vDSO for the time, there,
    and they do not see that sp has changed."""
    last = ours.frames[-1].name
    return len(ours.frames) == theirs.first and bool(re.match(
        r'gogo\b|runtime\.(mcall|systemstack|morestack|asmcgocall)\b', last)) or any(
        re.match(r'runtime\.(nanotime1|walltime)\b|time\.now\b', f.name)
        for f in below(ours, theirs))


def coroutine(ours, theirs):
    """A stack that begins with the address of code without CFI that calls
    _exit() and was not called (Boost.Context): they look for its caller. And
    while it changes over from one stack to the other they go by rbp, which is
    still, or already, that of another one."""
    i = theirs.first
    last = ours.frames[-1]
    return len(ours.frames) == i and (
        bool(NEVER_BACK.match(file_bytes(last, 16)[1:])) or
        ours.end == 'no_cfi' and last.name.endswith('_fcontext'))


def kept_rule(ours, theirs):
    """libunwind keeps rules by address alone. One that was a return address
    (looked up one before) and is a leaf's pc then, as landing pads are, gets
    the rule of the instruction before. Without its cache it is right."""
    return theirs.first == 1 and ours.frames[0].module.startswith('/') and \
        ours.frames[0].at in row_starts(ours.frames[0].module)


def installing(ours, theirs):
    """libgcc's functions save registers, and return address, only to overwrite
    them with those of an exception's handler, in the call before their last
    instructions: mov %rcx,%rsp; pop %rcx; jmp *%rcx. They go on from there with
    what was saved, some of which is the one's and some the other's. Ours ends."""
    return ours.end == 'no_cfi' and any(INSTALLS.fullmatch(f.name) and
               TO_HANDLER in file_bytes(f, INSTALLING, before=4)
               for f in ours.frames[theirs.first - 1:theirs.first])


def new_thread(ours, theirs):
    """Behind the system call that has made a thread there is no CFI, until it has
    cleared rbp: they go on by that, which is still that of who has made it, or
    by what lies on top of its stack. Ours knows the code, which calls the
    thread's function and exits."""
    code = file_bytes(ours.frames[0], 64, before=32)
    return ours.end == 'root' and len(ours.frames) == 1 and \
        SYSCALL in code[:32] and bool(THREAD_EXIT.search(code[32:]))


def realigned(ours, theirs):
    """gcc says of the end of a function that aligns its stack that the
    caller's frame pointer is where its own points to; there it is the
    caller's again. They lose that caller, or more."""
    return bool(REALIGNED.search(file_bytes(ours.frames[0], 12, before=16)))


RULES = {
    'libunwind': (installing, new_thread, vdso, no_search_table, shifted_segments,
                  only_debug_frame, in_longjmp, trampoline, planted,
                  beyond_code, stub, made_code, another_stack, realigned,
                  coroutine, gopclntab, kept_rule),
    'libdwfl': (installing, new_thread, trampoline, planted, beyond_code,
                lost_rbx, stub, made_code, another_stack, realigned, coroutine,
                gopclntab),
}


def explain(line):
    """{oracle: name of its fault, or None} for those that differ."""
    ours = Stack(line['ours'])
    found = {}
    for oracle, rules in RULES.items():
        if oracle in line:
            theirs = Stack(line[oracle])
            found[oracle] = next((r.__name__ for r in rules
                                  if r(ours, theirs)), None)
    return found


def describe(line):
    text = ''
    for key in ('ours', 'early', 'blocked', 'libunwind', 'libdwfl'):
        if key in line:
            first = line[key].get('first')
            note = '' if first is None else f', differs from #{first} on'
            text += f'    {key}{note}:\n{Stack(line[key])}'
    return text
