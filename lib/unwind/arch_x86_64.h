/*
 * What the walk has to know of x86-64: register numbers, and two readings of
 * machine code that help where a frame pointer is not known. Pure functions.
 */
#ifndef LIB_UNWIND_ARCH_X86_64_H
#define LIB_UNWIND_ARCH_X86_64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* DWARF numbers: System V psABI for AMD64, figure 3.36. */
#define X86_64_RAX    0
#define X86_64_RDX    1
#define X86_64_RCX    2
#define X86_64_RBX    3
#define X86_64_RSI    4
#define X86_64_RDI    5
#define X86_64_RBP    6
#define X86_64_RSP    7
#define X86_64_R8     8
#define X86_64_R12    12
#define X86_64_RIP    16
#define X86_64_N_REGS 17

/* What is added to the pc that a signal interrupted (see unwind.h). */
#define X86_64_PC_STEP 1

enum x86_64_call {
	X86_64_CALL_NONE,     /* no call instruction ends here */
	X86_64_CALL_DIRECT,   /* call rel32: its target is known */
	X86_64_CALL_INDIRECT, /* through a register or memory */
};

/* The longest call that is looked for: prefix, FF /2, SIB, disp32. */
#define X86_64_CALL_MAX 8

/*
 * Does a call instruction end where code[n] would stand? n is at most
 * X86_64_CALL_MAX here (more is not looked at). *ret_displacement is set for a
 * direct call: its target is the return address plus that. Instructions can't
 * be decoded backwards with certainty: "yes" means that it may be a call.
 */
enum x86_64_call x86_64_call_before(const uint8_t *code, size_t n,
				    int32_t *ret_displacement);

/* As much of a function's start as x86_64_frame_size looks at. */
#define X86_64_PROLOGUE_MAX 48

/*
 * The distance from the frame pointer down to the stack pointer that a
 * function has after its prologue, read from its first n bytes: push %rbp,
 * mov %rsp,%rbp, pushes, sub $n,%rsp. False if it starts in another way. Where
 * more is pushed or allocated it is larger than that.
 */
bool x86_64_frame_size(const uint8_t *code, size_t n, uint32_t *ret_size);

/*
 * Does code lower the stack pointer by what it only knows when it runs (a
 * variable array, alignment)? Bytes in the middle of an instruction count, too:
 * "yes" means that it may.
 */
bool x86_64_frame_varies(const uint8_t *code, size_t n);

/* Functions that only pass on to another are short. */
#define X86_64_TAIL_MAX 256

/*
 * Is there a jmp or jcc rel32 in code to distance from its start? Bytes in the
 * middle of an instruction count, too: "yes" means that it may be.
 */
bool x86_64_jumps_to(const uint8_t *code, size_t n, int64_t distance);

/* As aarch64_is_stub: x86_64_way.h knows these. */
static inline bool x86_64_is_stub(const uint8_t *code, size_t n)
{
	(void)code, (void)n;
	return false;
}

/*
 * Does code come to a call that does not return (a hlt or ud2 stands behind
 * it), past nothing but moves of registers?
 */
#define X86_64_LAST_MAX 24
bool x86_64_never_returns(const uint8_t *code, size_t n);

/*
 * Is this the way of a new thread, from behind the call of clone(2) or
 * clone3(2), which has given it 0: past tests of that to a call of its
 * function, behind which it exits? The caller of clone goes another way from
 * there. A fork's child may do the same, and has its parent's stack: only a
 * thread clears %rbp before the call, or has done so in what stands in front.
 */
#define X86_64_BIRTH_MAX    64
#define X86_64_BIRTH_BEFORE 9 /* clone3 of glibc, at the call */
bool x86_64_is_birth(const uint8_t *before, size_t n_before,
		     const uint8_t *code, size_t n);

/* How far that call is from the system call; musl's is 13 bytes. */
#define X86_64_BIRTH_DISTANCE 32

/*
 * Is this rt_sigreturn's trampoline: mov $15,%rax (or %eax); syscall? For C
 * libraries that give it no CFI (musl).
 */
#define X86_64_SIGRETURN_MAX 9
bool x86_64_is_sigreturn(const uint8_t *code, size_t n);

/*
 * Where rt_sigreturn finds DWARF register reg (0 to 16), as an offset from the
 * stack pointer in the trampoline: struct rt_sigframe after its return address
 * has been popped, arch/x86/include/asm/sigframe.h.
 */
uint32_t x86_64_sigframe_offset(unsigned int reg);

#endif
