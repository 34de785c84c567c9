"""The known faults of libunwind and libdwfl (the oracles), as rules.

A rule is a function that returns whether its fault explains the difference between
our stack and that of an oracle; its docstring describes the fault. explain() finds
the rule for each oracle that differs in a line of tests/oracle/differ.c. A difference
without a rule counts as a fault of ours.
"""

import functools
import itertools
import os
import re
import struct
import subprocess

# mov $15,%rax; syscall
SIGRETURN = bytes.fromhex('48c7c00f0000000f05')
# ror $0x11,%r8: glibc's longjmp decodes a pointer that setjmp has stored
UNMANGLE = bytes.fromhex('49c1c811')
# lea -8(%r10),%rsp, or with another register: the end of a function that aligns its
# stack, by gcc
REALIGNED = re.compile(rb'[\x48\x49]\x8d[\x60-\x67]\xf8', re.S)
# mov %rcx,%rsp; pop %rcx; jmp *%rcx: libgcc jumps to an exception's handler. INSTALLING
# is the largest distance in bytes from the call that installs the handler.
TO_HANDLER = bytes.fromhex('4889cc59ffe1')
INSTALLING = 144
INSTALLS = re.compile('_Unwind_(RaiseException|Resume|ForcedUnwind|Resume_or_Rethrow)')
SYSCALL = bytes.fromhex('0f05')
# mov $60,%eax or %al; syscall
THREAD_EXIT = re.compile(rb'(\xb8\x3c\0\0\0|\xb0\x3c)\x0f\x05', re.S)
# xor %rdi,%rdi; call; hlt
NEVER_BACK = re.compile(rb'[\x48]?\x31\xff\xe8.{4}\xf4', re.S)

# aarch64
PACIASP = bytes.fromhex('3f2303d5')

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
    """Returns the program headers of an ELF file, [(type, offset, vaddr, flags)];
    [] if the file is no ELF file."""
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
    """Returns whether the file has .eh_frame_hdr."""
    return any(s[0] == PT_GNU_EH_FRAME for s in segments(path))


def is_shifted(path):
    """Returns whether the distance of .text and .eh_frame_hdr in memory is another
    one than in the file."""
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
    """Returns bytes of the frame's file: before bytes in front of the frame's
    address, and n bytes from the address on."""
    for kind, offset, vaddr, flags in segments(frame.module):
        if kind == PT_LOAD and flags & 1 and vaddr + before <= frame.at:
            with open(frame.module, 'rb') as f:
                f.seek(frame.at - before - vaddr + offset)
                return f.read(n + before)
    return b''


@functools.lru_cache(None)
def row_starts(path):
    """Returns the addresses at which the rows of the file's .eh_frame start."""
    text = subprocess.run(['readelf', '--debug-dump=frames-interp', path],
                          capture_output=True, text=True, check=False).stdout
    return {int(a, 16) for a in re.findall(r'^([0-9a-f]{16}) ', text, re.M)}


# Each rule is called with (ours, theirs) and returns a bool. theirs.first is the index
# of the first frame that differs. The faulty step is that from the frame before it, or
# an earlier one, which has lost a register.

def equal_frames(ours, theirs):
    """Returns the frames of our stack that are equal in theirs, leaf first."""
    return ours.frames[:theirs.first]


def no_search_table(ours, theirs):
    """libunwind finds CFI only through PT_GNU_EH_FRAME, or in a .debug_frame that
    is not compressed. Without these it guesses by rbp."""
    return any(f.module.startswith('/') and segments(f.module) and
               not has_table(f.module) for f in equal_frames(ours, theirs))


def shifted_segments(ours, theirs):
    """libunwind assumes that p_vaddr - p_offset is the same for .text and for
    .eh_frame_hdr. In files of lld each segment has another value."""
    return any(is_shifted(f.module) for f in equal_frames(ours, theirs))


def only_debug_frame(ours, theirs):
    """libunwind, as Debian builds it, does not read .debug_frame."""
    return any(has_section(f.module, '.debug_frame')
               for f in equal_frames(ours, theirs))


def only_gopclntab(frame):
    return has_section(frame.module, '.gopclntab') and \
        not has_section(frame.module, '.debug_frame')


def gopclntab(ours, theirs):
    """In a Go program without .debug_frame the oracles do not read Go's own table,
    and follow rbp. So they miss the functions that have not pushed rbp yet, and no
    others: all frames that they find there must be in our stack, in the same order,
    up to the end of our stack."""
    if not any(only_gopclntab(f) for f in equal_frames(ours, theirs)):
        return False
    addrs = [f.addr for f in itertools.takewhile(only_gopclntab,
                                                 theirs.frames)]
    remaining = iter(f.addr for f in ours.frames)
    return all(a in remaining for a in addrs) or \
        ours.end != 'root' and ours.frames[-1].addr in addrs


def vdso(ours, theirs):
    """libunwind finds no CFI in the vDSO, which is not a file."""
    return any(f.module == '[vdso]' for f in equal_frames(ours, theirs))


def vdso_of_aarch64(ours, theirs):
    """libdwfl does not leave the trampoline of a signal, which is in the vDSO there."""
    return os.uname().machine == 'aarch64' and vdso(ours, theirs)


def lost_rbx(ours, theirs):
    """libdwfl loses rbx, on which the CFA of the dynamic linker's lazy binding
    depends."""
    return any(re.search(r'/ld-linux|/ld-2', f.module)
               for f in equal_frames(ours, theirs))


def is_longjmp(frame):
    """Returns whether the frame is in longjmp: by its name or, if libc has no
    names, by its code."""
    return bool(re.fullmatch('_*longjmp(_chk)?', frame.name)) or \
        not frame.name and UNMANGLE in file_bytes(frame, 96, before=96)


def in_longjmp(ours, theirs):
    """libunwind loses rbp in longjmp, where rbp's value is in another register."""
    return any(is_longjmp(f) for f in equal_frames(ours, theirs))


def uncalled_address(ours, theirs):
    """At a return address that no call wrote, but makecontext did, the oracles look
    up the byte before the address, which has no CFI. Our address is one greater, so
    that the byte before it is in the function."""
    i = theirs.first
    return i < min(len(ours.frames), len(theirs.frames)) and \
        ours.frames[i].addr == theirs.frames[i].addr + 1 and \
        ours.frames[i].offset == 0


def trampoline(ours, theirs):
    """The oracles do not know the trampoline of sigreturn without CFI (Go, musl).
    Our unwinder recognises its code, also in the middle of its two instructions."""
    at, *others = ours.frames[:theirs.first + 1]
    return SIGRETURN in file_bytes(at, 16, before=7) or any(
        re.search('sigreturn|restore_rt', f.name) or
        file_bytes(f, len(SIGRETURN)) == SIGRETURN for f in others)


def code_without_cfi(ours, theirs):
    """In code without CFI that has pushed nothing (the PLT of a static executable,
    the system call in clone3, memory functions of musl) the oracles leave out the
    caller, or end."""
    return any(f.guessed for f in ours.frames[:theirs.first + 1])


def not_executable(ours, theirs):
    """The oracles take a return address outside executable memory for a frame, and
    some continue from it. Our stack ends before it."""
    i = theirs.first
    return ours.end != 'root' and len(ours.frames) == i and \
        len(theirs.frames) > i and theirs.frames[i].module == 'unmapped'


def generated_code(ours, theirs):
    """In code that a program generated (JIT), which has no CFI, the oracles follow
    rbp even if it does not point to a saved frame pointer and a return address."""
    return ours.end == 'no_cfi' and len(ours.frames) == theirs.first and \
        ours.frames[-1].module == ''


def go_stack_switch(ours, theirs):
    """Go's runtime has switched from a goroutine's stack to the scheduler's: the
    oracles take old words on the new stack for callers. They do not see the switch
    either when the runtime calls the vDSO for the time."""
    last = ours.frames[-1].name
    return len(ours.frames) == theirs.first and bool(re.match(
        r'gogo\b|runtime\.(mcall|systemstack|morestack|asmcgocall)\b', last)) or any(
        re.match(r'runtime\.(nanotime1|walltime)\b|time\.now\b', f.name)
        for f in equal_frames(ours, theirs))


def coroutine(ours, theirs):
    """The root of a coroutine of Boost.Context is the address of code that calls
    _exit(): the oracles look for its caller. During a switch between two stacks they
    follow rbp, which still has, or already has, the value of the other stack."""
    i = theirs.first
    last = ours.frames[-1]
    return len(ours.frames) == i and (
        bool(NEVER_BACK.match(file_bytes(last, 16)[1:])) or
        ours.end == 'no_cfi' and last.name.endswith('_fcontext'))


def cached_rule(ours, theirs):
    """libunwind caches rules by address alone. An address that was a return address,
    for which the byte before it was looked up, gets the same rule when it is the pc
    of a leaf, as landing pads can be. Without its cache libunwind is right."""
    return theirs.first == 1 and ours.frames[0].module.startswith('/') and \
        ours.frames[0].at in row_starts(ours.frames[0].module)


def installing_handler(ours, theirs):
    """Functions of libgcc that install an exception handler overwrite their saved
    registers and return address with those of the handler, shortly before their last
    instructions: mov %rcx,%rsp; pop %rcx; jmp *%rcx. The oracles continue with a mix
    of registers of the caller and of the handler. Our stack ends there."""
    return ours.end == 'no_cfi' and any(INSTALLS.fullmatch(f.name) and
               TO_HANDLER in file_bytes(f, INSTALLING, before=4)
               for f in ours.frames[theirs.first - 1:theirs.first])


def new_thread(ours, theirs):
    """A new thread has no CFI between the system call that created it and the clearing
    of rbp. The oracles follow rbp, which still has the value of the creating thread,
    or the top word of the new stack. Our unwinder recognises the code, which calls
    the thread's function and exits, and ends with the root."""
    code = file_bytes(ours.frames[0], 64, before=32)
    return ours.end == 'root' and len(ours.frames) == 1 and \
        SYSCALL in code[:32] and bool(THREAD_EXIT.search(code[32:]))


def realigned(ours, theirs):
    """At the end of a function that aligns its stack, gcc's CFI says that the
    caller's frame pointer is where rbp points to, but rbp already has the caller's
    value. The oracles lose the caller, or several callers."""
    return bool(REALIGNED.search(file_bytes(ours.frames[0], 12, before=16)))


def signed(ours, theirs):
    """libunwind 1.6 ends at a function that signs its return address, after a second frame of
    it: the CFI has DW_CFA_AARCH64_negate_ra_state."""
    if os.uname().machine != 'aarch64' or theirs.first == 0:
        return False
    frame = ours.frames[theirs.first - 1]
    # The register of the return address is wrong for the next function, too.
    return any(PACIASP in file_bytes(f, 0, before=f.offset)
               for f in ours.frames[max(theirs.first - 2, 0):theirs.first]) and \
        all(f.name == frame.name for f in theirs.frames[theirs.first:])


RULES = {
    'libunwind': (signed, installing_handler, new_thread, vdso, no_search_table,
                  shifted_segments, only_debug_frame, in_longjmp, trampoline,
                  uncalled_address, not_executable, code_without_cfi,
                  generated_code, go_stack_switch, realigned, coroutine, gopclntab,
                  cached_rule),
    'libdwfl': (vdso_of_aarch64, installing_handler, new_thread, trampoline, uncalled_address,
                not_executable, lost_rbx, code_without_cfi, generated_code,
                go_stack_switch, realigned, coroutine, gopclntab),
}


def explain(line):
    """Returns {oracle: name of the rule, or None} for the oracles that differ in
    this line of differ.c."""
    ours = Stack(line['ours'])
    found = {}
    for oracle, rules in RULES.items():
        if oracle in line:
            theirs = Stack(line[oracle])
            found[oracle] = next((r.__name__ for r in rules
                                  if r(ours, theirs)), None)
    return found


def describe(line):
    """Returns the stacks of a line of differ.c as text."""
    text = ''
    for key in ('ours', 'early', 'blocked', 'libunwind', 'libdwfl'):
        if key in line:
            first = line[key].get('first')
            note = '' if first is None else f', differs from #{first} on'
            text += f'    {key}{note}:\n{Stack(line[key])}'
    return text
