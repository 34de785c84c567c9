/*
 * Handles a ptrace-stop of a thread in the table: copies the thread's sample, repairs an
 * interrupted system call, and continues the thread. Allocates nothing meanwhile.
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
 * Handles a stop of a known thread: takes the sample that is due, repairs an interrupted system
 * call, and lets the thread go on, or holds it if its process crashes (struct thread_held). signal:
 * of a signal-delivery-stop, which the thread gets; else 0. If the thread is stopped before the
 * first instruction of a signal handler, the sample has the code that the signal has interrupted.
 */
void stop_handle(struct thread *th, enum tracee_status status, int signal);

#endif
