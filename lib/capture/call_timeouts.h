/*
 * Timeouts of resumed system calls: ends each call when it would have timed out without capture.
 * Used by stop.c at each stop, and by capture.c at each tick.
 *
 * A resumed call is a system call that a ptrace-stop interrupted and that the thread enters again
 * (restart/resume.h). The kernel then starts the call's relative timeout anew. So capture keeps
 * the time of the first entry (struct resumed_call), and interrupts the thread when the timeout is
 * over. Times are ns, CLOCK_MONOTONIC.
 */
#ifndef LIB_CAPTURE_CALL_TIMEOUTS_H
#define LIB_CAPTURE_CALL_TIMEOUTS_H

#include <stdint.h>

#include "lib/capture/state.h"

/*
 * Returns an estimate of when the stopped thread entered the system call that the stop interrupted.
 * The estimate is between the real entry and now_ns. raw: the registers at the stop.
 */
uint64_t call_timeouts_since(const struct thread *th, const struct arch_regs *raw, uint64_t now_ns);

/*
 * Call this at each stop, after the functions of restart/resume.h. If the kernel alone would end
 * the thread's resumed call too late (resumed_call.late), lowers capture.timeout_ns to the end of
 * the timeout. Until capture.timeout_ns no call has to be ended; UINT64_MAX: there is none.
 */
void call_timeouts_watch(const struct thread *th);

/*
 * Call this at each tick. Does nothing before capture.timeout_ns. Otherwise interrupts the threads
 * whose timeouts are over at now_ns: at such a thread's next stop resume_stopped() ends the call.
 * Then sets capture.timeout_ns to 0 if it has interrupted a thread, so that the next tick checks
 * again. If not, sets it to the earliest timeout that the kernel alone would end too late.
 */
void call_timeouts_end_due(struct capture *c, uint64_t now_ns);

#endif
