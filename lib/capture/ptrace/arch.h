/*
 * What lib/capture has to know of the processor: the registers of a stopped thread in DWARF order,
 * and the number, arguments and result of the system call that a ptrace-stop interrupted.
 *
 * On x86_64 the registers show all of these. On aarch64 the registers at the stop do not say
 * whether the thread was in a call (do_signal() in arch/arm64/kernel/signal.c). arch_find_call()
 * decides by the instructions around the pc:
 * - pc at the call's instruction: the thread is about to enter the call, or the kernel restarts the
 *   call by itself.
 * - pc behind that instruction: the result has replaced the first argument. The code before the
 *   call may show from which other register that argument was copied; or the caller may know the
 *   argument from elsewhere (arch_set_first_argument). On aarch64 the kernel does not restart a
 *   call because a tracer has changed its result. Instead the tracer gives the thread registers by
 *   which it enters the call again (arch_call_again(), arch_set_regs()).
 */
#ifndef LIB_CAPTURE_PTRACE_ARCH_H
#define LIB_CAPTURE_PTRACE_ARCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "lib/base/util.h"

#if defined(__x86_64__)

/* Registers are given by their DWARF numbers, sets of registers by bits. */
#define ARCH_SP	  7  /* rsp */
#define ARCH_PC	  16 /* rip */
#define ARCH_REGS 17
/* Bytes below the stack pointer that a function may use: System V ABI 3.2.2. */
#define ARCH_RED_ZONE 128
/* rbx, rbp and r12 to r15: a function returns them unchanged. */
#define ARCH_CALLEE_SAVED (1u << 3 | 1u << 6 | 1u << 12 | 1u << 13 | 1u << 14 | 1u << 15)
/* rdi: has the first argument of a system call, also after the call. */
#define ARCH_FIRST_ARGUMENT 5
/* The registers that a blocked thread has unchanged since an earlier stop at the same place. */
#define ARCH_REMEMBERED ARCH_CALLEE_SAVED
/* 1: a function that calls no other has its return address in a register only. */
#define ARCH_LINK_REGISTER 0
/* 1: arch_set_result() can make the kernel restart a call. */
#define ARCH_RESULT_RESTARTS 1
/* Bytes of the instruction that makes a system call. */
#define ARCH_CALL_BYTES 2
/* Bytes of code that arch_find_call() needs, before the pc and in total; 0: none. */
#define ARCH_CODE_BEFORE 0
#define ARCH_CODE_BYTES	 0

/* 1: struct arch_regs has the thread pointer, which is pthread_self(3). */
#define ARCH_POINTER_IN_REGS 1

/* The registers of a stopped thread. */
#define arch_regs user_regs_struct

#elif defined(__aarch64__)

#define ARCH_SP		     31
#define ARCH_PC		     32
#define ARCH_REGS	     33
#define ARCH_RED_ZONE	     0
/* x19 to x29, without the link register. */
#define ARCH_CALLEE_SAVED    0x3ff80000u
/* x0: has the first argument of a system call until the call returns its result there. */
#define ARCH_FIRST_ARGUMENT  0
#define ARCH_REMEMBERED	     (ARCH_CALLEE_SAVED | 1u << 30)
#define ARCH_LINK_REGISTER   1
#define ARCH_RESULT_RESTARTS 0
#define ARCH_CALL_BYTES	     4
#define ARCH_CODE_BEFORE     (8 * ARCH_CALL_BYTES)
#define ARCH_CODE_BYTES	     (ARCH_CODE_BEFORE + ARCH_CALL_BYTES)

#define ARCH_POINTER_IN_REGS 0

/* Where a thread was stopped. */
enum arch_stopped {
	ARCH_IN_USER_MODE,
	ARCH_BEFORE_CALL, /* on its way into the call, for the first time or again */
	ARCH_AFTER_CALL,  /* the call has returned */
};

struct arch_regs {
	struct user_regs_struct user;
	/* Written by arch_find_call() and arch_set_first_argument(). */
	enum arch_stopped stopped;
	bool first_known;
	uint64_t first; /* the first argument of the call */
};

#else
#error "no description of this processor"
#endif

#define ARCH_REGS_ALL ((UINT64_C(1) << ARCH_REGS) - 1)

/*
 * Reads the registers of a thread in a ptrace-stop. Returns 0, -ESRCH if the thread has died, or
 * -ENOEXEC if it is a 32-bit one.
 */
must_check int arch_get_regs(uint32_t tid, struct arch_regs *ret);

/*
 * Finds the system call for registers from arch_get_regs(), and notes it in *regs. code:
 * ARCH_CODE_BYTES bytes of the thread's code, of which ARCH_CODE_BEFORE are before the pc. Where
 * ARCH_CODE_BYTES is 0, does nothing. Elsewhere call it before the functions below, which otherwise
 * take the thread for one in user mode.
 */
void arch_find_call(struct arch_regs *regs, const uint8_t *code);

/* Returns sp less the red zone, or sp itself if it is too small for that. */
static inline uint64_t arch_stack_start(uint64_t sp)
{
	return sp > ARCH_RED_ZONE ? sp - ARCH_RED_ZONE : sp;
}

/* Copies the registers in DWARF order into ret_regs[ARCH_REGS]. */
void arch_to_dwarf(const struct arch_regs *regs, uint64_t *ret_regs);

/*
 * Returns true if the stop interrupted a system call. Then sets the call's number, and its result
 * so far: a part of a transfer, a negative errno, or one of the kernel's restart codes
 * (restart/syscalls.h). aarch64: also true for a thread that is about to make a call, for which the
 * result is -ERESTARTSYS, and for a thread whose call has just returned.
 */
bool arch_interrupted_call(const struct arch_regs *regs, long *ret_nr, long *ret_result);

/*
 * Returns the result of a call at whose end PTRACE_SYSCALL has stopped the thread. arch_find_call()
 * is not needed: while the thread was in the call, its code may have left memory.
 */
long arch_result_at_end(const struct arch_regs *regs);

/* Returns the same as arch_interrupted_call(), for a caller that needs no number and no result. */
bool arch_in_call(const struct arch_regs *regs);

/* Returns false if the first argument of the interrupted call is lost (aarch64), else true. */
bool arch_knows_arguments(const struct arch_regs *regs);

/* Sets the first argument of the call in *regs. Call this if arch_knows_arguments() is false. */
void arch_set_first_argument(struct arch_regs *regs, uint64_t first);

/*
 * Returns the pc that /proc/TID/syscall shows for a thread that is blocked in the interrupted call.
 */
uint64_t arch_pc_in_call(const struct arch_regs *regs);

/*
 * Returns true if the registers are those that the kernel gives a handler of this signal at its
 * first instruction. On aarch64 only a handler with SA_SIGINFO is recognised.
 */
bool arch_enters_handler(const struct arch_regs *regs, int signal);

/*
 * Sets the result of the interrupted call in the stopped thread tid. Returns 0; -ESRCH if the
 * thread has died; -ENOSYS if ARCH_RESULT_RESTARTS is 0.
 */
must_check int arch_set_result(uint32_t tid, long result);

/*
 * Returns the thread pointer of the stopped thread, the base of its thread-local storage; 0: not
 * known. glibc and musl put a thread's own data (struct pthread) at the end of its stack, except
 * for the main thread. On x86_64 the pointer is the address of these data, which is
 * pthread_self(3). On aarch64 it is their end, and the function calls ptrace(2)
 * (ARCH_POINTER_IN_REGS).
 */
uint64_t arch_thread_pointer(uint32_t tid, const struct arch_regs *regs);

/*
 * Returns true if these n words, which were read from addr and end at the head of the thread's list
 * of robust locks, begin at the own data of a glibc thread: addr is its pthread_self(3).
 */
bool arch_is_own_data(const uint64_t *words, size_t n, uint64_t addr);

/*
 * Returns argument n of the interrupted call, 0 <= n < ARCH_ARGUMENTS. The first one is valid only
 * if arch_knows_arguments() is true.
 */
#define ARCH_ARGUMENTS 6
uint64_t arch_argument(const struct arch_regs *regs, unsigned int n);

/*
 * Sets *ret to registers with which the stopped thread makes call nr with these arguments, and then
 * goes on at the pc of regs. regs: the registers of a thread that a stop has taken out of a call.
 * before: the code in front of that pc. Returns false if that code is not the instruction of a call
 * of the native ABI.
 */
bool arch_call_again(const struct arch_regs *regs, const uint8_t before[ARCH_CALL_BYTES], long nr,
		     const uint64_t arguments[ARCH_ARGUMENTS], struct arch_regs *ret);

/* Sets the result of the call in *regs; arch_set_regs() then gives *regs to the thread. */
void arch_regs_set_result(struct arch_regs *regs, uint64_t result);

/* Gives these registers to a stopped thread. Returns 0, or -ESRCH if the thread has died. */
must_check int arch_set_regs(uint32_t tid, const struct arch_regs *regs);

#endif
