/*
 * The parts that depend on the processor: the registers of a stopped thread in DWARF order, and the
 * number, arguments and result of an interrupted system call. Restarts of system calls are
 * implemented for x86_64 only: elsewhere arch_interrupted_call and arch_call_again return false.
 */
#ifndef LIB_CAPTURE_PTRACE_ARCH_H
#define LIB_CAPTURE_PTRACE_ARCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "lib/base/util.h"

#if defined(__x86_64__)

/* Registers are given by their DWARF numbers. */
#define ARCH_SP	  7  /* rsp */
#define ARCH_PC	  16 /* rip */
#define ARCH_REGS 17
/* Bytes below the stack pointer that a function may use: System V ABI 3.2.2. */
#define ARCH_RED_ZONE 128
/* rbx, rbp and r12 to r15: a function returns them unchanged. */
#define ARCH_CALLEE_SAVED (1u << 3 | 1u << 6 | 1u << 12 | 1u << 13 | 1u << 14 | 1u << 15)
/* rdi: has the first argument of a system call, also after the call. */
#define ARCH_FIRST_ARGUMENT 5

#elif defined(__aarch64__)

#define ARCH_SP		    31
#define ARCH_PC		    32
#define ARCH_REGS	    33
#define ARCH_RED_ZONE	    0
/* x19 to x29, without the link register. */
#define ARCH_CALLEE_SAVED   0x3ff80000u
/* x0: has the first argument of a system call until the call returns its result there. */
#define ARCH_FIRST_ARGUMENT 0

#else
#error "no description of this processor"
#endif

#define ARCH_REGS_ALL ((UINT64_C(1) << ARCH_REGS) - 1)

/*
 * Reads the registers of a thread in a ptrace-stop. Returns 0, -ESRCH if the thread has died, or
 * -ENOEXEC if it is a 32-bit one.
 */
must_check int arch_get_regs(uint32_t tid, struct user_regs_struct *ret);

/* Copies the registers in DWARF order into ret_regs[ARCH_REGS]. */
void arch_to_dwarf(const struct user_regs_struct *regs, uint64_t *ret_regs);

/*
 * Returns true if the stop interrupted a system call; then sets the call's number, and its result
 * so far: a negative errno or one of the kernel's restart codes. False otherwise, or if restarts
 * are not implemented for this processor.
 */
bool arch_interrupted_call(const struct user_regs_struct *regs, long *ret_nr, long *ret_result);

/*
 * Returns false if the thread was stopped in user mode. True if it was in a system call, or if the
 * registers do not show it.
 */
bool arch_in_call(const struct user_regs_struct *regs);

/*
 * Returns true if the registers are those that the kernel gives a handler of this signal at its
 * first instruction. On aarch64 only a handler with SA_SIGINFO is recognised.
 */
bool arch_enters_handler(const struct user_regs_struct *regs, int signal);

/* Sets the result of the interrupted call. Returns 0 or -errno. */
must_check int arch_set_result(uint32_t tid, long result);

/*
 * Returns the thread pointer; 0: not known. glibc and musl put a thread's own data at the end of
 * its stack, except for the main thread.
 */
uint64_t arch_thread_pointer(const struct user_regs_struct *regs);

/*
 * Returns true if the n words at addr are the start of the data to which the thread pointer of a
 * glibc thread points. Always false if these data cannot be recognised (all processors but x86_64).
 */
bool arch_is_own_data(const uint64_t *words, size_t n, uint64_t addr);

/* Returns argument n of the interrupted call, 0 <= n < ARCH_ARGUMENTS. */
#define ARCH_ARGUMENTS 6
uint64_t arch_argument(const struct user_regs_struct *regs, unsigned int n);

/*
 * Makes registers in *ret with which the stopped thread runs call nr with these arguments, and
 * after which the thread is at the pc of regs. regs: of a thread that was taken out of a call.
 * before: the two bytes of code in front of its pc. Returns false if that is not possible: the call
 * was not one of the native ABI, or this is not implemented for the processor.
 */
bool arch_call_again(const struct user_regs_struct *regs, const uint8_t before[2], long nr,
		     const uint64_t arguments[ARCH_ARGUMENTS], struct user_regs_struct *ret);

/* Sets the result of the call in *regs; arch_set_regs() then gives *regs to the thread. */
void arch_regs_set_result(struct user_regs_struct *regs, uint64_t result);

/* Sets the registers of a stopped thread. Returns 0, or -ESRCH if the thread has died. */
must_check int arch_set_regs(uint32_t tid, const struct user_regs_struct *regs);

#endif
