/*
 * Describes the processor whose stacks lib/unwind unwinds: its registers, and functions that
 * recognise pieces of its machine code. It is the processor that this library is compiled for. If
 * the macro UNWIND_FOR_AARCH64 is defined, it is aarch64 on any machine, so that the tests can
 * unwind samples that were recorded on aarch64.
 *
 * cpu/cpu_x86_64.c or cpu/cpu_aarch64.c implements the functions. They are pure and have no errors.
 * code points to machine code of the target, of which n bytes may be read. A *_MAX constant is the
 * number of bytes that is enough for the function after it; with fewer, the answer can be "no".
 * 24 bytes are enough for cpu_is_stub(), cpu_plt_stub() and cpu_is_sigreturn().
 */
#ifndef LIB_UNWIND_CPU_H
#define LIB_UNWIND_CPU_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/capture/sample.h"

/*
 * CPU_RELOCATION_*	types of the relocations by which an ELF file names the function of a GOT
 *			slot (elf/plt.h); IRELATIVE: code chooses the function at run time
 * CPU_PLT_*		stubs of a PLT: see cpu_plt_stub()
 * CPU_LINK_REGISTER	1: a call leaves the return address in register CPU_RA; 0: on the stack
 * CPU_SP, CPU_FP, CPU_PC	register numbers, by DWARF
 * CPU_RA		DWARF's return address column
 * CPU_N_REGS		number of registers in a sample
 * CPU_DWARF_REGS	number of registers that CFI has rules for: the first ones of a sample
 * CPU_CALLEE_SAVED	bit n: register n is callee-saved
 * CPU_SAVED_REGS	the callee-saved registers, beside CPU_FP, that struct rule (rules/rows.h)
 *			has room for
 * CPU_PC_STEP		what unwind_after_call() (unwind.h) adds to a pc, in bytes
 * cpu_return_address()	returns the address in a word that a call stored
 */
#if defined(__aarch64__) || defined(UNWIND_FOR_AARCH64)

#define CPU_NAME	  "aarch64"
#define CPU_SAMPLE_ARCH	  SAMPLE_ARCH_AARCH64
#define CPU_ELF_MACHINE	  EM_AARCH64
#define CPU_LINK_REGISTER 1

#define CPU_RELOCATION_JUMP_SLOT R_AARCH64_JUMP_SLOT
#define CPU_RELOCATION_GLOB_DAT	 R_AARCH64_GLOB_DAT
#define CPU_RELOCATION_IRELATIVE R_AARCH64_IRELATIVE
#define CPU_PLT_ALIGN		 4
#define CPU_PLT_STUB_MIN	 16

/* DWARF numbers: DWARF for the Arm 64-bit Architecture, 4.1. */
#define CPU_FP 29
#define CPU_RA 30
#define CPU_SP 31
/* In samples only: in DWARF this number is another register. */
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
 * Removes the signature of pointer authentication (paciasp), which is in the bits above the
 * address. Addresses have 48 bits, unless a program asks for memory above them, which no
 * program does for code.
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

#define CPU_RELOCATION_JUMP_SLOT R_X86_64_JUMP_SLOT
#define CPU_RELOCATION_GLOB_DAT	 R_X86_64_GLOB_DAT
#define CPU_RELOCATION_IRELATIVE R_X86_64_IRELATIVE
#define CPU_PLT_ALIGN		 8
#define CPU_PLT_STUB_MIN	 8

/* DWARF numbers: System V psABI for AMD64, figure 3.36. */
#define X86_64_RAX		 0
#define X86_64_RCX		 2
#define X86_64_RBX		 3
#define X86_64_RBP		 6
#define X86_64_RSP		 7
#define X86_64_R12		 12
#define X86_64_RIP		 16

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
	CPU_CALL_NONE,	   /* no call instruction ends there */
	CPU_CALL_DIRECT,   /* a call to a known target */
	CPU_CALL_INDIRECT, /* a call through a register or memory */
};

/*
 * Finds the call instruction that ends with the byte code[n - 1]: the return address is that of
 * code + n. A call has at most CPU_CALL_MAX bytes. For CPU_CALL_DIRECT the called address is the
 * return address plus *ret_displacement. On x86-64 the answer may be wrong: instructions cannot be
 * decoded backwards with certainty, and the bytes may be the end of another instruction.
 */
#define CPU_CALL_MAX 8
enum cpu_call cpu_call_before(const uint8_t *code, size_t n, int32_t *ret_displacement);

/*
 * Sets *ret_size to the distance in bytes from the frame pointer down to the stack pointer after
 * the prologue of the function that begins with code. The distance is a lower bound, since later
 * code may push more. Returns false if the function does not begin by setting up a frame pointer.
 */
#define CPU_PROLOGUE_MAX 48
bool cpu_frame_size(const uint8_t *code, size_t n, uint32_t *ret_size);

/*
 * Returns true if the n bytes of code, a function or a part of one, may lower the stack pointer by
 * an amount that is only known at run time (a variable-length array, alignment). On x86-64 it can
 * return true by mistake: bytes in the middle of an instruction may look like such an instruction.
 */
bool cpu_frame_varies(const uint8_t *code, size_t n);

/*
 * Returns true if the function that begins with code has a jump to the address that is distance
 * bytes after the function's start. A jump behind the first CPU_TAIL_MAX bytes of the function is
 * not found, because the caller (space/code.c) passes no more.
 */
#define CPU_TAIL_MAX 256
bool cpu_jumps_to(const uint8_t *code, size_t n, int64_t distance);

/*
 * Returns true if code is a stub of a PLT (procedure linkage table, elf/plt.h). In a stub the
 * return address still is where the call left it. x86-64: always false, since x86_64_path.h
 * handles stubs.
 */
bool cpu_is_stub(const uint8_t *code, size_t n);

/*
 * Reads a stub of a PLT: code is its code, vaddr its address. Sets *ret_slot to the address (vaddr)
 * of the GOT slot through which the stub jumps. Returns an upper bound of the stub's size in bytes,
 * or 0 if the code is no stub.
 *
 * Stubs begin at multiples of CPU_PLT_ALIGN bytes from the start of their section, and have at
 * least CPU_PLT_STUB_MIN bytes: on x86-64 8 or 16, on aarch64 16, or 24 with branch target
 * identification or pointer authentication.
 */
uint32_t cpu_plt_stub(const uint8_t *code, size_t n, uint64_t vaddr, uint64_t *ret_slot);

/*
 * Returns true if code leads straight to a call that does not return: without a jump or a change of
 * the stack pointer before the call, and with hlt or ud2 behind it. aarch64: always false.
 */
#define CPU_NORETURN_MAX 24
bool cpu_never_returns(const uint8_t *code, size_t n);

/*
 * Returns true if code is on the path of a new thread, from its clone(2) or clone3(2) to the call
 * of the thread's function. This path is what the processor executes after clone has returned 0.
 * The path clears the frame pointer, and leads to an indirect call with exit(2) behind it. before
 * points to the n_before bytes in front of code, CPU_THREAD_START_BEFORE at most. The instruction
 * that clears the frame pointer may be among them. aarch64: always false.
 *
 * The parent takes another path behind clone(2). The child of a fork may take the same branches,
 * but it goes on with a copy of its parent's stack, so its code does not clear the frame pointer.
 */
#define CPU_THREAD_START_MAX 64
/* In clone3 of glibc the instruction that clears begins so many bytes before the call. */
#define CPU_THREAD_START_BEFORE 9
bool cpu_is_thread_start(const uint8_t *before, size_t n_before, const uint8_t *code, size_t n);

/*
 * Returns true if a frame probably is just behind a system call that has returned 0, as clone(2)
 * does in a new thread: rax is 0, and rcx, to which the instruction syscall copies its return
 * address, is 0 to 32 bytes below the frame's pc. r: the registers by DWARF number; bit i of known:
 * r[i] is valid (struct frame_regs, rules/expr.h). aarch64: always false.
 */
bool cpu_syscall_returned_zero(uint64_t known, const uint64_t *r);

/*
 * Returns true if code is the trampoline of rt_sigreturn(2), to which a signal handler returns. In
 * musl, and in the kernel's vDSO for aarch64, it has no CFI: the kernel expects unwinders to
 * compare the instructions (arch/arm64/kernel/vdso/sigreturn.S).
 */
bool cpu_is_sigreturn(const uint8_t *code, size_t n);

/*
 * Returns the distance in bytes from the stack pointer in the trampoline of rt_sigreturn(2) up to
 * the saved value of register reg (below CPU_N_REGS) in struct rt_sigframe. On x86-64 the handler's
 * ret has already popped the trampoline's address from the stack.
 */
uint32_t cpu_sigframe_offset(unsigned int reg);

#endif
