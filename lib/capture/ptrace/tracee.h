/*
 * Wait statuses of a seized thread: classify first, act second.
 *
 * The classes are those of ptrace(2) for PTRACE_SEIZE and
 * PTRACE_O_TRACESYSGOOD. Pure functions, no
 * system call.
 */
#ifndef LIB_CAPTURE_PTRACE_TRACEE_H
#define LIB_CAPTURE_PTRACE_TRACEE_H

#include <stdbool.h>
#include <stdint.h>

enum tracee_status {
	TRACEE_TRAP,	   /* PTRACE_EVENT_STOP, SIGTRAP: an interrupt, a new
			      thread's first stop, or a SIGCONT's notice */
	TRACEE_GROUP_STOP, /* PTRACE_EVENT_STOP with a stopping signal */
	TRACEE_SIGNAL,	   /* signal-delivery-stop */
	TRACEE_CALL,	   /* begin or end of a call, after PTRACE_SYSCALL */
	TRACEE_CLONE,	   /* PTRACE_EVENT_CLONE, _FORK, _VFORK, in the parent */
	TRACEE_EXEC,	   /* PTRACE_EVENT_EXEC */
	TRACEE_EXIT,	   /* PTRACE_EVENT_EXIT: about to die */
	TRACEE_OTHER,	   /* an event that was not asked for: continue */
	TRACEE_DEAD,	   /* exited or killed */
};

/*
 * What a status of waitpid(2) means. *ret_signal is the signal of
 * TRACEE_SIGNAL and TRACEE_GROUP_STOP, else 0.
 */
enum tracee_status tracee_classify(int status, int *ret_signal);

/* What ptrace(2) is to deliver when the thread goes on, as its last argument.
 */
static inline void *tracee_delivery(enum tracee_status status, int signal)
{
	return (void *)(intptr_t)(status == TRACEE_SIGNAL ? signal : 0);
}

/* SIGSTOP, SIGTSTP, SIGTTIN or SIGTTOU. */
bool tracee_signal_stops(int signal);

/* Its default action ends the process with a core (signal(7)). */
bool tracee_signal_dumps(int signal);

#endif
