/*
 * The highest real-time priority (SCHED_FIFO, SCHED_RR) of the threads of all targets.
 *
 * The caller of capture_tick runs above it (capture_realtime_priority). A thread's priority is
 * read when the thread is new, after a tick that was late, and along with the thread's name.
 */
#ifndef LIB_CAPTURE_PRIORITY_H
#define LIB_CAPTURE_PRIORITY_H

#include "lib/capture/state.h"

/* Reads the priority of the thread, and counts the thread with it. */
void priority_read(struct thread *th);

/* Removes the thread from the count. Call this before the thread is freed. */
void priority_forget(struct thread *th);

#endif
