/*
 * Counts the threads of all targets by their real-time priority (SCHED_FIFO, SCHED_RR). The highest
 * priority that a thread has is the result of capture_realtime_priority(): the caller makes the
 * tracing thread run above it. A thread's priority is read when the thread is new, after ticks that
 * capture missed, and along with the thread's name.
 */
#ifndef LIB_CAPTURE_PRIORITY_H
#define LIB_CAPTURE_PRIORITY_H

#include "lib/capture/state.h"

/*
 * Reads the thread's priority, and counts the thread for it instead of for its former priority. A
 * thread whose priority cannot be read counts as one without real-time priority.
 */
void priority_read(struct thread *th);

/* Removes the thread from the count. Call this before the thread is freed. */
void priority_forget(struct thread *th);

#endif
