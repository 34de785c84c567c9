/*
 * Detaches from a process in which a thread is about to run its handler of a crash signal, so that
 * a crash reporter can trace the process.
 *
 * A crash reporter is a helper process that the handler starts or informs, and that attaches to the
 * threads of the crashed process. A thread has one tracer, so capture must have left all threads
 * before the handler runs. Capture does so at the signal-delivery-stop of the crashed thread, which
 * it holds: it interrupts the other threads, holds each at its next stop, lets the crashed thread
 * go to the first instruction of the handler, where an interrupt stops it, and detaches from all.
 * Interrupted system calls are repaired as at any stop; a resumed call returns what it has so far,
 * and a timed wait begins anew. Other targets are not touched.
 *
 * The order of detaching: the leader first, since the kernel queues a signal that the process
 * ignores while the leader is traced, and such a signal makes calls of the other threads fail with
 * EINTR; the crashed thread last. If it is the leader that crashes, other threads may still see
 * such a signal for the microseconds until the leader is detached from.
 *
 * If no thread stops for CRASH_STOP_NS (a parent in vfork(2), uninterruptible sleep), the rest is
 * left by the end of the tracing thread, with all others (detach.h). That detaches from other
 * targets, too, for some milliseconds, so it happens only so often for the processes of one user.
 *
 * Nothing is allocated meanwhile, and of files only /proc/TID/status of the crashed thread is
 * opened, and /proc/PID/task if threads were born just before. The order of calls is in reap.c.
 */
#ifndef LIB_CAPTURE_CRASH_H
#define LIB_CAPTURE_CRASH_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/base/util.h"
#include "lib/capture/options.h"
#include "lib/capture/ptrace/tracee.h"

struct capture;
struct thread;
struct traced_process;

/*
 * Limits of the wait for the stops of the process's threads: since the last stop that has come, and
 * in total. On a free machine 1,000 threads take 50 ms; where many threads are runnable, each waits
 * for a processor before it stops.
 */
#define CRASH_STOP_NS (100 * NS_PER_MS)
#define CRASH_HOLD_NS (500 * NS_PER_MS)

/*
 * Returns true if capture has to detach before the thread gets this signal: it is a crash signal
 * (tracee_signal_crashes), not ignored by the target's caller, and the process has a handler for
 * it. Opens a file of /proc for a crash signal only.
 */
bool crash_is_due(const struct thread *th, int signal);

/*
 * Begins: from here on stop_handle() holds the process's threads in their stops, the crashed thread
 * included.
 */
void crash_begin(const struct thread *th, int signal);

/* Gives up: the held threads go on, and stay traced. */
void crash_give_up(struct traced_process *t);

/* Gives up, and reports that the handler runs traced. */
void crash_runs_traced(struct traced_process *t);

/*
 * Interrupts the threads that are neither held nor interrupted. Returns true if all threads that
 * live are held.
 */
bool crash_interrupt(struct traced_process *t);

/*
 * Sends the crashed thread to its handler. An interrupt stops the thread before the handler's first
 * instruction, where it shows whether the signal is blocked while the handler runs.
 */
void crash_enter_handler(struct traced_process *t);

/*
 * Takes that stop. Returns true if the thread is held there, or was killed; false: it has not
 * stopped yet.
 */
must_check bool crash_is_in_handler(struct traced_process *t);

/*
 * Detaches from all held threads, and from those that the kernel has attached meanwhile. No thread
 * is in the table afterwards. The process is TRACED_ENDED, unless it was killed: then the next tick
 * finds that it has ended.
 */
void crash_detach(struct traced_process *t);

/*
 * Returns true if the tracing thread may end because of a crash now: there is no other target, or
 * the process's user has caused few such ends so far. Notes the end.
 */
must_check bool crash_may_end_tracer(struct traced_process *t);

/*
 * For a child that capture follows and that is no target yet: if this is the stop of a crash signal
 * with a handler, detaches from the thread, notes the crash and returns true. Other threads of the
 * child stay traced; it was born a moment ago and rarely has any.
 */
must_check bool crash_leave_child(struct capture *c, uint32_t tid, enum tracee_status status,
				  int signal);

/*
 * Returns true if capture has left the process in a crash in the last 10 s: a child of it may be
 * its crash reporter, and the caller may not know yet. crash_is_target_again() clears that.
 */
bool crash_was_left(struct capture *c, int32_t pid);
void crash_is_target_again(struct capture *c, int32_t pid);

/*
 * Returns true if the process, a child that capture has followed, runs its handler of a crash
 * signal, so that capture has left it: the caller does not add it as a target now. Returns true
 * once for each crash.
 */
bool capture_child_has_crashed(struct capture *c, int32_t pid, struct capture_crash *ret);

/* The tracing thread has ended, and with it the stops of all threads. */
void crash_tracer_ended(struct traced_process *t);

#endif
