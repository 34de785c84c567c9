/*
 * Handles the ptrace-stops of the threads in the table of tracees.h. reap.c takes the stops from
 * waitpid(2) and calls stop_handle() for each. Allocates nothing while a thread is stopped.
 *
 * Parameters of the functions, as tracee_classify() returns them: status is the kind of the stop.
 * signal is the signal that the thread is about to get in a signal-delivery-stop, or the signal
 * that has caused a group-stop, else 0.
 */
#ifndef LIB_CAPTURE_STOP_H
#define LIB_CAPTURE_STOP_H

#include <stdint.h>

#include "lib/capture/ptrace/tracee.h"
#include "lib/capture/state.h"

/*
 * Continues a stopped tracee by the ptrace(2) request how, PTRACE_CONT or PTRACE_SYSCALL. A thread
 * in a group-stop stays in it (PTRACE_LISTEN). Ignores errors: if the thread was killed meanwhile,
 * waitpid(2) reports that.
 */
void stop_continue(uint32_t tid, enum tracee_status status, int signal, int how);

/*
 * Notes that the thread stays stopped (th->held) until capture detaches from its process, because a
 * thread of the process crashes (crash.h). The detach delivers the signal.
 */
void stop_hold(struct thread *th, enum tracee_status status, int signal);

/*
 * Call this when capture has seized the thread, for the first time or again. Sets th->dump: the
 * thread may be writing a core dump, because capture has not seen the signals before. If the thread
 * was in a group-stop, sets GROUP_STOP_AFTER (thread.h): it may still be in the call that the
 * group-stop interrupted.
 */
void stop_note_seized(struct thread *th);

/*
 * Call this when a look at a thread begins, unless an interrupt of the thread is under way.
 * Replaces GROUP_STOP_AFTER by GROUP_STOP_NONE: a tick after a group-stop the thread has left the
 * call that the group-stop interrupted.
 */
void stop_note_left_call(struct thread *th);

/*
 * Handles a stop of a thread:
 * - Repairs the system call that the stop interrupted (restart/).
 * - Takes the sample if th->due is DUE_SAMPLE. If the thread is before the first instruction of a
 *   signal handler, the sample shows the code that the signal interrupted.
 * - Continues the thread. If its process crashes, calls stop_hold() instead. Exception: a thread at
 *   the begin of a resumed call (restart/resume.h) is continued even then, because a detach there
 *   would interrupt the call.
 *
 * status must not be TRACEE_DEAD, TRACEE_EXEC or TRACEE_EXIT.
 */
void stop_handle(struct thread *th, enum tracee_status status, int signal);

#endif
