/*
 * Keeps the highest real-time priority (SCHED_FIFO, SCHED_RR) of the threads of all targets, for
 * capture_realtime_priority(): the tracing thread runs above it. A thread's priority is read when
 * the thread is new, after ticks that capture missed, and along with the thread's name.
 */
#ifndef LIB_CAPTURE_PRIORITY_H
#define LIB_CAPTURE_PRIORITY_H

#include "lib/capture/state.h"

/*
 * Reads the thread's priority and counts the thread with it, instead of with its former priority.
 */
void priority_read(struct thread *th);

/* Removes the thread from the count. Call this before the thread is freed. */
void priority_forget(struct thread *th);

#endif
