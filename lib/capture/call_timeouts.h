/*
 * Timeouts of resumed system calls.
 *
 * A call that is entered again starts its relative timeout anew. So capture watches the time of
 * the first entry (struct resumed_call, restart/resume.h), and interrupts the thread when the
 * timeout is over.
 */
#ifndef LIB_CAPTURE_CALL_TIMEOUTS_H
#define LIB_CAPTURE_CALL_TIMEOUTS_H

#include <stdint.h>

#include "lib/capture/state.h"

/*
 * Returns the time (ns, CLOCK_MONOTONIC) since when the stopped thread has been in the system call
 * that the stop interrupted. This is an estimate: not before the call began, and at most now_ns.
 * raw: the thread's registers.
 */
uint64_t call_timeouts_since(const struct thread *th, const struct arch_regs *raw, uint64_t now_ns);

/* Call this after each stop: watches the timeout of the thread's resumed call, if it has one. */
void call_timeouts_watch(const struct thread *th);

/* Interrupts the threads whose timeouts are over. */
void call_timeouts_end_due(struct capture *c, uint64_t now_ns);

#endif
