/*
 * Which interrupted system calls must be made to restart.
 *
 * Most calls restart by themselves after a ptrace-stop. Some return EINTR as
 * soon as anything wakes them, a tracer included, though nothing has happened:
 * for these the result is set to -ERESTARTNOHAND, which the kernel turns into
 * a restart, or into EINTR if a handler really runs (signal(7), "Interruption
 * of system calls"; arch/x86/kernel/signal.c). For any other call that would
 * be wrong: close(2) has given its descriptor back before it returns EINTR.
 */
#ifndef LIB_CAPTURE_SYSCALLS_H
#define LIB_CAPTURE_SYSCALLS_H

#include <stdbool.h>

/* The kernel's own results for calls that a signal took out of their wait. */
#define RESULT_ERESTARTSYS	     (-512)
#define RESULT_ERESTARTNOINTR	     (-513)
#define RESULT_ERESTARTNOHAND	     (-514)
#define RESULT_ERESTART_RESTARTBLOCK (-516)

enum restart_rule {
	RESTART_LEAVE,	 /* the result is right as it is */
	RESTART_REWRITE, /* to RESULT_ERESTARTNOHAND */
	/*
	 * The same, if its first argument is a socket: like recv(2), read(2)
	 * of one with a timeout has not taken a byte when it returns EINTR.
	 */
	RESTART_IF_SOCKET,
	/* The same, if its first or its third argument is one: splice(2). */
	RESTART_IF_EITHER_SOCKET,
	/* The same, if it is an ioctl like that of tcdrain(3): repair.c. */
	RESTART_IF_DRAIN,
	/*
	 * The same, if the thread is under a seccomp filter, which may lack
	 * restart_syscall, the call that RESULT_ERESTART_RESTARTBLOCK needs.
	 */
	RESTART_IF_FILTERED,
	/*
	 * It gives up at once where it is interrupted at its work, and has to
	 * do all of that again: not by a code of the kernel's, under which it
	 * would never come to its end, but left alone (lib/capture/rest.h). By
	 * its arguments: bpf(2) that loads a program, fallocate(2).
	 */
	RESTART_ALONE,
};

/* nr and result of a call of the native ABI. */
enum restart_rule syscall_restart_rule(long nr, long result);

/*
 * True for calls that give the processor away and do next to nothing else:
 * sleeps, waits for events or locks, sched_yield(2).
 */
bool syscall_only_waits(long nr);

/* True for a result that means: taken out of a wait. */
bool syscall_was_waiting(long result);

#endif
