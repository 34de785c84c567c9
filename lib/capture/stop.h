/*
 * Handles the ptrace-stops of threads in the table of tracees.h, as waitpid(2) has reported them to
 * reap.c. Allocates nothing while a thread is stopped. status: the kind of the stop.
 */
#ifndef LIB_CAPTURE_STOP_H
#define LIB_CAPTURE_STOP_H

#include <stdint.h>

#include "lib/capture/ptrace/tracee.h"
#include "lib/capture/state.h"

/*
 * Continues a stopped tracee by the ptrace(2) request how, PTRACE_CONT or PTRACE_SYSCALL, and
 * delivers signal (0: none). A thread in a group-stop stays in it (PTRACE_LISTEN). Ignores errors:
 * a thread that was killed meanwhile is reported by waitpid(2).
 */
void stop_resume(uint32_t tid, enum tracee_status status, int signal, int how);

/*
 * Notes that a stopped thread stays stopped until capture detaches from its process in a crash
 * (crash.h, struct thread_held). signal: delivered at the detach; 0: none.
 */
void stop_hold(struct thread *th, enum tracee_status status, int signal);

/*
 * Call this when capture has seized the thread, for the first time or again. The thread may be
 * writing a core dump, or may not have left the kernel since a group-stop.
 */
void stop_note_seized(struct thread *th);

/*
 * Call this a tick after stop_note_seized(): by then the thread has left the call that a group-stop
 * interrupted.
 */
void stop_note_left_call(struct thread *th);

/*
 * Handles a stop of a thread: repairs an interrupted system call, takes the sample if one is due,
 * and continues the thread. In a crash of its process calls stop_hold() instead, except within a
 * resumed call. signal: the signal of a signal-delivery-stop, which is delivered; else 0. If the
 * thread is stopped before the first instruction of a signal handler, the sample shows the code
 * that the signal interrupted. status must not be TRACEE_DEAD, TRACEE_EXEC or TRACEE_EXIT.
 */
void stop_handle(struct thread *th, enum tracee_status status, int signal);

#endif
