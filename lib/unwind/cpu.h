/*
 * The processor whose stacks are unwound, under names of no processor: the one
 * that this is compiled for. With UNWIND_FOR_AARCH64 it is that one anywhere,
 * so that its recorded samples are unwound on every machine that runs the
 * tests.
 */
#ifndef LIB_UNWIND_CPU_H
#define LIB_UNWIND_CPU_H

#include <elf.h>

#include "lib/capture/sample.h"

#if defined(__aarch64__) || defined(UNWIND_FOR_AARCH64)

#include "lib/unwind/arch_aarch64.h"

#define CPU_NAME	  "aarch64"
#define CPU_SAMPLE_ARCH	  SAMPLE_ARCH_AARCH64
#define CPU_ELF_MACHINE	  EM_AARCH64
#define CPU_LINK_REGISTER 1 /* a call leaves its return address in CPU_RA */

#define CPU_SP	   AARCH64_SP
#define CPU_FP	   AARCH64_FP
#define CPU_PC	   AARCH64_PC
#define CPU_RA	   AARCH64_LR /* DWARF's return address column */
#define CPU_N_REGS AARCH64_N_REGS
/* Those that CFI speaks of: PC is not one of them. */
#define CPU_DWARF_REGS AARCH64_PC
/* x19 to x29. */
#define CPU_CALLEE_SAVED 0x3ff80000u
/* Of those beside the frame pointer, what a struct rule has room for. */
#define CPU_SAVED_REGS                                         \
	{                                                      \
		AARCH64_X19, AARCH64_X19 + 1, AARCH64_X19 + 2, \
			AARCH64_X19 + 3, AARCH64_X19 + 4       \
	}
#define CPU_PC_STEP AARCH64_PC_STEP

#define cpu_return_address aarch64_return_address

/* May a system call have come back to it just now, with 0? */
static inline bool cpu_has_zero_of_call(uint64_t known, const uint64_t *r)
{
	(void)known;
	(void)r;
	return false;
}

#define cpu_call	  aarch64_call
#define CPU_CALL_NONE	  AARCH64_CALL_NONE
#define CPU_CALL_DIRECT	  AARCH64_CALL_DIRECT
#define CPU_CALL_INDIRECT AARCH64_CALL_INDIRECT
#define CPU_CALL_MAX	  AARCH64_CALL_MAX
#define cpu_call_before	  aarch64_call_before

#define CPU_PROLOGUE_MAX    AARCH64_PROLOGUE_MAX
#define cpu_frame_size	    aarch64_frame_size
#define cpu_frame_varies    aarch64_frame_varies
#define CPU_TAIL_MAX	    AARCH64_TAIL_MAX
#define cpu_jumps_to	    aarch64_jumps_to
#define cpu_is_stub	    aarch64_is_stub
#define CPU_LAST_MAX	    AARCH64_LAST_MAX
#define cpu_never_returns   aarch64_never_returns
#define CPU_BIRTH_MAX	    AARCH64_BIRTH_MAX
#define CPU_BIRTH_BEFORE    AARCH64_BIRTH_BEFORE
#define cpu_is_birth	    aarch64_is_birth
#define cpu_is_sigreturn    aarch64_is_sigreturn
#define cpu_sigframe_offset aarch64_sigframe_offset

#elif defined(__x86_64__)

#include "lib/unwind/arch_x86_64.h"

#define CPU_NAME	  "x86_64"
#define CPU_SAMPLE_ARCH	  SAMPLE_ARCH_X86_64
#define CPU_ELF_MACHINE	  EM_X86_64
#define CPU_LINK_REGISTER 0

#define CPU_SP	       X86_64_RSP
#define CPU_FP	       X86_64_RBP
#define CPU_PC	       X86_64_RIP
#define CPU_RA	       X86_64_RIP
#define CPU_N_REGS     X86_64_N_REGS
#define CPU_DWARF_REGS X86_64_N_REGS
#define CPU_CALLEE_SAVED \
	(1u << X86_64_RBX | 1u << X86_64_RBP | 0xfu << X86_64_R12)
#define CPU_SAVED_REGS                                                  \
	{                                                               \
		X86_64_RBX, X86_64_R12, X86_64_R12 + 1, X86_64_R12 + 2, \
			X86_64_R12 + 3                                  \
	}
#define CPU_PC_STEP X86_64_PC_STEP

static inline uint64_t cpu_return_address(uint64_t word)
{
	return word;
}

/*
 * May a system call have come back to it just now, with 0? syscall(2) leaves in
 * rcx where that is.
 */
static inline bool cpu_has_zero_of_call(uint64_t known, const uint64_t *r)
{
	const uint64_t needed = 1u << X86_64_RAX | 1u << X86_64_RCX;

	return (known & needed) == needed && r[X86_64_RAX] == 0 &&
	       r[X86_64_RIP] - r[X86_64_RCX] <= X86_64_BIRTH_DISTANCE;
}

#define cpu_call	  x86_64_call
#define CPU_CALL_NONE	  X86_64_CALL_NONE
#define CPU_CALL_DIRECT	  X86_64_CALL_DIRECT
#define CPU_CALL_INDIRECT X86_64_CALL_INDIRECT
#define CPU_CALL_MAX	  X86_64_CALL_MAX
#define cpu_call_before	  x86_64_call_before

#define CPU_PROLOGUE_MAX    X86_64_PROLOGUE_MAX
#define cpu_frame_size	    x86_64_frame_size
#define cpu_frame_varies    x86_64_frame_varies
#define CPU_TAIL_MAX	    X86_64_TAIL_MAX
#define cpu_jumps_to	    x86_64_jumps_to
#define cpu_is_stub	    x86_64_is_stub
#define CPU_LAST_MAX	    X86_64_LAST_MAX
#define cpu_never_returns   x86_64_never_returns
#define CPU_BIRTH_MAX	    X86_64_BIRTH_MAX
#define CPU_BIRTH_BEFORE    X86_64_BIRTH_BEFORE
#define cpu_is_birth	    x86_64_is_birth
#define cpu_is_sigreturn    x86_64_is_sigreturn
#define cpu_sigframe_offset x86_64_sigframe_offset

#else
#error "no description of this processor"
#endif

#endif
