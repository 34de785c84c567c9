/*
 * What capture has to know of the processor: a stopped thread's registers in
 * DWARF order, and where an interrupted call's number and result are.
 */
#ifndef LIB_CAPTURE_PTRACE_ARCH_H
#define LIB_CAPTURE_PTRACE_ARCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "lib/base/util.h"

#if defined(__x86_64__)

#define ARCH_SP	  7  /* rsp, by DWARF number */
#define ARCH_PC	  16 /* rip */
#define ARCH_REGS 17
/* Bytes below the stack pointer that a function may use: System V ABI 3.2.2. */
#define ARCH_RED_ZONE 128
/* rbx, rbp and r12 to r15, by DWARF number: what a call gives back unchanged.
 */
#define ARCH_CALLEE_SAVED (1u << 3 | 1u << 6 | 1u << 12 | 1u << 13 | 1u << 14 | 1u << 15)
/* rdi: a system call's first argument, which it gives back unchanged. */
#define ARCH_ARGUMENT 5

#elif defined(__aarch64__)

#define ARCH_SP		  31
#define ARCH_PC		  32
#define ARCH_REGS	  33
#define ARCH_RED_ZONE	  0
/* x19 to x29; the link register is not one of them. */
#define ARCH_CALLEE_SAVED 0x3ff80000u
#define ARCH_ARGUMENT	  0

#else
#error "no description of this processor"
#endif

#define ARCH_REGS_ALL ((UINT64_C(1) << ARCH_REGS) - 1)

/*
 * The registers of a thread in a ptrace-stop. Returns 0, -ESRCH if it has
 * died, -ENOEXEC if it is a 32-bit one.
 */
must_check int arch_get_regs(uint32_t tid, struct user_regs_struct *ret);

/* The same in DWARF order, into regs[ARCH_REGS]. */
void arch_to_dwarf(const struct user_regs_struct *regs, uint64_t *ret_regs);

/*
 * The call that a stopped thread was taken out of: true, its number and its
 * result (a negative errno, or one of the kernel's restart codes). False where
 * it was not in a call, or where this processor's restarts are not known here.
 */
bool arch_interrupted_call(const struct user_regs_struct *regs, long *ret_nr, long *ret_result);

/*
 * True where the thread was taken out of a call, or this processor does not
 * tell; false where an interrupt took it out of user mode.
 */
bool arch_in_call(const struct user_regs_struct *regs);

/* Gives the interrupted call another result. Returns 0 or -errno. */
must_check int arch_set_result(uint32_t tid, long result);

/*
 * The thread pointer. glibc and musl lay out a thread's own data at the end of
 * its stack, but for the main thread's. 0 where it is not known.
 */
uint64_t arch_thread_pointer(const struct user_regs_struct *regs);

/*
 * Do n words at addr begin what the thread pointer of a thread of glibc points
 * to? False where that has no mark (any but x86_64).
 */
bool arch_is_own_data(const uint64_t *words, size_t n, uint64_t addr);

/* An argument of the interrupted call: n is 0 to ARCH_ARGUMENTS - 1. */
#define ARCH_ARGUMENTS 6
uint64_t arch_argument(const struct user_regs_struct *regs, unsigned int n);

/*
 * Makes registers with which a stopped thread, taken out of the call that regs
 * show, runs the call nr with these arguments, and stands behind it as regs
 * do. before: the two bytes of code in front of its pc. False where that is not
 * possible: it did not come out of a call of the native ABI, or this is not
 * known for the processor.
 */
bool arch_call_again(const struct user_regs_struct *regs, const uint8_t before[2], long nr,
		     const uint64_t arguments[ARCH_ARGUMENTS], struct user_regs_struct *ret);

/* regs with another result of the call. */
void arch_with_result(struct user_regs_struct *regs, uint64_t result);

/* Returns 0, or -ESRCH if the thread has died. */
must_check int arch_set_regs(uint32_t tid, const struct user_regs_struct *regs);

#endif
