/*
 * Handles a ptrace-stop of a thread in the table: repairs an interrupted system call, copies the
 * thread's sample, and continues the thread. Allocates nothing meanwhile.
 */
#ifndef LIB_CAPTURE_STOP_H
#define LIB_CAPTURE_STOP_H

#include <stdint.h>

#include "lib/capture/ptrace/tracee.h"
#include "lib/capture/state.h"

/*
 * Continues a stopped tracee by the ptrace request how. A thread in a group-stop stays in it
 * (PTRACE_LISTEN). If the thread was killed meanwhile, waitpid(2) reports its end.
 */
void stop_resume(uint32_t tid, enum tracee_status status, int signal, int how);

/*
 * Holds a stopped thread until capture detaches from its process (struct thread_held). signal: to
 * deliver then; else 0.
 */
void stop_hold(struct thread *th, enum tracee_status status, int signal);

/*
 * Capture has seized the thread, or seized it again. The thread may be writing a core, and may not
 * have left the kernel since a group-stop.
 */
void stop_note_seized(struct thread *th);

/* A tick later a thread has left the call that a group-stop has interrupted. */
void stop_note_left(struct thread *th);

/*
 * Handles a stop of a known thread: repairs an interrupted system call, takes the sample that is
 * due, and lets the thread go on, or holds it if its process crashes (struct thread_held). signal:
 * of a signal-delivery-stop, which the thread gets; else 0. If the thread is stopped before the
 * first instruction of a signal handler, the sample has the code that the signal has interrupted.
 */
void stop_handle(struct thread *th, enum tracee_status status, int signal);

#endif
