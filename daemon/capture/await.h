/*
 * Waits for the next stop of a tracee, or until a time, by one system call (waitid).
 *
 * stops.h uses this module in the tracer (the thread that traces, tracer.h), while stops are due
 * after nearly every tick. A stop is due while a thread has been interrupted and has not stopped
 * yet (capture_pending). Order of calls: await_init() once; await_enter() at the start of each
 * tracer; await_set_timer() at each tick, and then await_next() for each stop that is due.
 *
 * waitid has no time limit, so the signal of a timer, AWAIT_SIGNAL, ends the wait. A signal that
 * comes just before the call of waitid does not end the wait, so the timer sends the signal again
 * and again. The signal may also interrupt other system calls of the tracer (EINTR). Events of
 * descriptors do not end the wait, so the time has to be near.
 *
 * A process has at most one struct await. All threads but the tracer must block AWAIT_SIGNAL.
 */
#ifndef DAEMON_CAPTURE_AWAIT_H
#define DAEMON_CAPTURE_AWAIT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "lib/base/util.h"

/* Not SIGALRM, which lib/capture uses itself. */
#define AWAIT_SIGNAL SIGUSR1

struct await {
	timer_t timer;
	bool made;   /* the timer exists; if not, await_set_timer() does nothing */
	bool is_set; /* the timer is set: await_next() can be called */
};

/*
 * Initialises *a, makes the timer, and sets a handler of AWAIT_SIGNAL that does nothing. If the
 * kernel refuses one of them, is_set stays false for ever, and the caller must wait in another way.
 */
void await_init(struct await *a);

/* Unblocks AWAIT_SIGNAL for the calling thread, which may then call await_next(). */
void await_enter(void);

/*
 * Sets the timer to first_ns of CLOCK_MONOTONIC, and every again_ns after that. Replaces an earlier
 * setting. Sets is_set on success.
 */
void await_set_timer(struct await *a, uint64_t first_ns, uint64_t again_ns);
/* Stops the timer and clears is_set. */
void await_clear_timer(struct await *a);

/*
 * Waits for the next wait status of a tracee (tracee_wait() in lib/capture/ptrace/tracee.h).
 * Returns true and sets *ret_tid and *ret_status; the caller handles both before the next call.
 * Returns false if until_ns has come, or if there are no tracees. until_ns: the first_ns of
 * await_set_timer(). The function may notice this time up to again_ns late. a->is_set must be true.
 */
must_check bool await_next(const struct await *a, uint64_t until_ns, pid_t *ret_tid,
			   int *ret_status);

#endif
