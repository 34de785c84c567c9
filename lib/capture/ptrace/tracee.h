/*
 * Waits for a status of a thread that was attached by PTRACE_SEIZE, and classifies the status.
 *
 * The classes are those of ptrace(2) for PTRACE_SEIZE and PTRACE_O_TRACESYSGOOD. All functions but
 * tracee_wait() are pure.
 */
#ifndef LIB_CAPTURE_PTRACE_TRACEE_H
#define LIB_CAPTURE_PTRACE_TRACEE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum tracee_status {
	TRACEE_TRAP,	   /* PTRACE_EVENT_STOP with SIGTRAP: an interrupt, the first stop of a new
			      thread, or the notice of a SIGCONT */
	TRACEE_GROUP_STOP, /* PTRACE_EVENT_STOP with a stopping signal */
	TRACEE_SIGNAL,	   /* signal-delivery-stop */
	TRACEE_CALL,	   /* begin or end of a system call, after PTRACE_SYSCALL */
	TRACEE_CLONE,	   /* PTRACE_EVENT_CLONE, _FORK, _VFORK, in the parent */
	TRACEE_EXEC,	   /* PTRACE_EVENT_EXEC */
	TRACEE_EXIT,	   /* PTRACE_EVENT_EXIT: the thread is about to die */
	TRACEE_OTHER,	   /* a PTRACE_EVENT that is not named here */
	TRACEE_DEAD,	   /* the thread exited or was killed */
};

/*
 * Waits for a status of the tracee tid, or of any tracee (-1), as waitpid(2) does with __WALL, and
 * returns the tracee's tid; 0 if there is no status and blocks is false; -1 with errno.
 *
 * This function leaves the status of a signal-delivery-stop, a syscall-stop or a PTRACE_EVENT_STOP
 * in the kernel, and the next wait would return it again. So before the next wait the caller
 * continues the tracee, or calls PTRACE_LISTEN for a group-stop. Reason: waitpid(2) takes the
 * tracee's signal out of the kernel, so the signal is lost if the tracer is killed before it
 * continues the tracee. Other statuses are taken out, as by waitpid(2): an end, another
 * PTRACE_EVENT_*.
 */
pid_t tracee_wait(pid_t tid, bool blocks, int *ret_status);

/*
 * Classifies a status of waitpid(2). *ret_signal is the signal of TRACEE_SIGNAL and
 * TRACEE_GROUP_STOP, else 0.
 */
enum tracee_status tracee_classify(int status, int *ret_signal);

/* Returns the last argument of the ptrace(2) that continues the thread: the signal to deliver. */
static inline void *tracee_delivery(enum tracee_status status, int signal)
{
	return (void *)(intptr_t)(status == TRACEE_SIGNAL ? signal : 0);
}

/* Returns true for SIGSTOP, SIGTSTP, SIGTTIN and SIGTTOU. */
bool tracee_signal_stops(int signal);

/*
 * Returns true for the signals by which a program crashes, and for which it may have a handler that
 * reports the crash: SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP and SIGSYS.
 */
bool tracee_signal_crashes(int signal);

/* Returns true if the signal's default action ends the process with a core dump (signal(7)). */
bool tracee_signal_dumps(int signal);

#endif
