/*
 * The processor whose stacks are unwound: the one that this is compiled for.
 * With UNWIND_FOR_AARCH64 it is that one anywhere, so that its recorded samples
 * are unwound on every machine that runs the tests.
 *
 * arch_x86_64.c or arch_aarch64.c has the functions, which are pure.
 */
#ifndef LIB_UNWIND_CPU_H
#define LIB_UNWIND_CPU_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/capture/sample.h"

/*
 * CPU_LINK_REGISTER: a call leaves its return address in CPU_RA.
 *
 * CPU_SP, CPU_FP, CPU_PC and CPU_RA (DWARF's return address column) are numbers
 * of registers, by DWARF. Of CPU_N_REGS registers CFI speaks of CPU_DWARF_REGS.
 * CPU_CALLEE_SAVED has a bit for each; CPU_SAVED_REGS are those beside the
 * frame pointer that a struct rule has room for.
 *
 * CPU_PC_STEP is added to the pc that a signal interrupted (see unwind.h).
 * cpu_return_address gives the address in a word that a call has left.
 */
#if defined(__aarch64__) || defined(UNWIND_FOR_AARCH64)

#define CPU_NAME	  "aarch64"
#define CPU_SAMPLE_ARCH	  SAMPLE_ARCH_AARCH64
#define CPU_ELF_MACHINE	  EM_AARCH64
#define CPU_LINK_REGISTER 1

/* DWARF numbers: DWARF for the Arm 64-bit Architecture, 4.1. */
#define CPU_FP 29
#define CPU_RA 30
#define CPU_SP 31
/* Of a sample only: DWARF has another register there. */
#define CPU_PC	       32
#define CPU_N_REGS     33
#define CPU_DWARF_REGS CPU_PC
/* x19 to x29 */
#define CPU_CALLEE_SAVED 0x3ff80000u
#define CPU_SAVED_REGS             \
	{                          \
		19, 20, 21, 22, 23 \
	}
#define CPU_PC_STEP 4

/*
 * Where pointer authentication signs a return address (paciasp), the signature
 * stands in the bits above the address: of 48 bits, unless a program asks for
 * memory above them, which none does for code.
 */
static inline uint64_t cpu_return_address(uint64_t word)
{
	return word & ((UINT64_C(1) << 48) - 1);
}

#elif defined(__x86_64__)

#define CPU_NAME	  "x86_64"
#define CPU_SAMPLE_ARCH	  SAMPLE_ARCH_X86_64
#define CPU_ELF_MACHINE	  EM_X86_64
#define CPU_LINK_REGISTER 0

/* DWARF numbers: System V psABI for AMD64, figure 3.36. */
#define X86_64_RAX	  0
#define X86_64_RCX	  2
#define X86_64_RBX	  3
#define X86_64_RBP	  6
#define X86_64_RSP	  7
#define X86_64_R12	  12
#define X86_64_RIP	  16

#define CPU_SP		 X86_64_RSP
#define CPU_FP		 X86_64_RBP
#define CPU_PC		 X86_64_RIP
#define CPU_RA		 X86_64_RIP
#define CPU_N_REGS	 17
#define CPU_DWARF_REGS	 CPU_N_REGS
/* rbx, rbp, r12 to r15 */
#define CPU_CALLEE_SAVED 0xf048u
#define CPU_SAVED_REGS                     \
	{                                  \
		X86_64_RBX, 12, 13, 14, 15 \
	}
#define CPU_PC_STEP 1

static inline uint64_t cpu_return_address(uint64_t word)
{
	return word;
}

#else
#error "no description of this processor"
#endif

enum cpu_call {
	CPU_CALL_NONE,	   /* no call instruction ends here */
	CPU_CALL_DIRECT,   /* its target is known */
	CPU_CALL_INDIRECT, /* through a register or memory */
};

/*
 * Is the instruction that ends where code[n] would stand a call? No more than
 * the last CPU_CALL_MAX bytes are looked at. *ret_displacement is set for a
 * direct one: its target is the return address plus that. Instructions of
 * x86-64 can't be decoded backwards with certainty: a call means that it may be
 * one.
 */
#define CPU_CALL_MAX 8
enum cpu_call cpu_call_before(const uint8_t *code, size_t n, int32_t *ret_displacement);

/*
 * The distance from the frame pointer down to the stack pointer that a function
 * has after its prologue, read from its first n bytes, of which
 * CPU_PROLOGUE_MAX are enough. False if it starts in another way. Where more is
 * pushed or allocated it is larger than that.
 */
#define CPU_PROLOGUE_MAX 48
bool cpu_frame_size(const uint8_t *code, size_t n, uint32_t *ret_size);

/*
 * Does code lower the stack pointer by what it only knows when it runs (a
 * variable array, alignment)? Of x86-64 bytes in the middle of an instruction
 * count, too: "yes" means that it may.
 */
bool cpu_frame_varies(const uint8_t *code, size_t n);

/*
 * Does the function that code is the start of jump to distance from there?
 * Functions that only pass on to another are short.
 */
#define CPU_TAIL_MAX 256
bool cpu_jumps_to(const uint8_t *code, size_t n, int64_t distance);

/*
 * Is code the stub of a PLT, and the return address where the call has left it?
 * Of aarch64 only: x86_64_path.h knows the others.
 */
bool cpu_is_stub(const uint8_t *code, size_t n);

/*
 * Does code come to a call that does not return (what stands behind it cannot
 * be executed), past nothing that changes the stack pointer? Of x86-64 only.
 */
#define CPU_NORETURN_MAX 24
bool cpu_never_returns(const uint8_t *code, size_t n);

/*
 * Is this the way of a new thread, from behind the call of clone(2) or
 * clone3(2), which has given it 0: past tests of that to a call of its
 * function, behind which it exits? The caller of clone goes another way from
 * there. A fork's child may do the same, and has its parent's stack: only a
 * thread clears the frame pointer before the call, or has done so in what
 * stands in front. Of x86-64 only.
 */
#define CPU_THREAD_START_MAX	64
#define CPU_THREAD_START_BEFORE 9 /* clone3 of glibc, at the call */
bool cpu_is_thread_start(const uint8_t *before, size_t n_before, const uint8_t *code, size_t n);

/* May a system call have come back to it just now, with 0? Of x86-64 only. */
bool cpu_syscall_returned_zero(uint64_t known, const uint64_t *r);

/*
 * Is this rt_sigreturn's trampoline? musl gives its own no CFI, and the kernel
 * that of aarch64: unwinders are to look for these instructions
 * (arch/arm64/kernel/vdso/sigreturn.S).
 */
bool cpu_is_sigreturn(const uint8_t *code, size_t n);

/*
 * Where rt_sigreturn finds register reg of a sample, as an offset from the
 * stack pointer in the trampoline: struct rt_sigframe, of x86-64 after its
 * return address has been popped.
 */
uint32_t cpu_sigframe_offset(unsigned int reg);

#endif
