/*
 * Waits for stops of tracees. A stop is due while a thread has been interrupted and has not stopped
 * yet (capture_pending). The module uses the cheapest of three ways:
 * 1. While no stop is due, the event loop waits for SIGCHLD and other events.
 * 2. While stops are due, the tracer waits for SIGCHLD alone.
 * 3. If stops are due at each tick, the tracer waits for the stops themselves, from tick to tick
 *    (daemon/capture/await.h). A stop then costs one system call, half as much as in way 2. Before
 *    the tracer sleeps, it polls for a moment if polls have been useful (daemon/capture/polling.h).
 */
#ifndef DAEMON_CAPTURE_STOPS_H
#define DAEMON_CAPTURE_STOPS_H

#include <signal.h>

#include "daemon/capture/await.h"
#include "daemon/capture/polling.h"
#include "daemon/capture/ticker.h"
#include "daemon/msg/msg_capture.h"
#include "lib/base/loop.h"
#include "lib/capture/capture.h"

struct stops {
	struct capture *capture;
	sigset_t child_signal;
	int signal_fd;
	struct loop_source *source;
	bool behind;	    /* there are more wait statuses than one call handles */
	uint64_t period_ns; /* of the ticks */
	unsigned int ticks; /* number of the last ticks in a row after which stops were due */
	uint64_t events_ns; /* when the event loop runs again at the latest */
	struct await await;
	struct polling polling;
	struct heartbeat_polls *counts; /* in the heartbeat page */
	bool polls;			/* the next stops_take() begins with a poll */
};

/*
 * Initialises *s. Blocks SIGCHLD, SIGALRM and AWAIT_SIGNAL, so call it before another thread is
 * made, which then blocks them, too. loop, capture and counts must outlive s. Returns 0 or -errno.
 */
must_check int stops_init(struct stops *s, struct loop *loop, struct capture *capture,
			  struct heartbeat_polls *counts);

/* Call it after each tick of t, when all threads have been interrupted. */
void stops_tick(struct stops *s, const struct ticker *t);

/*
 * Waits for stops in way 2 or 3, and handles them. Way 3 waits also while no stop is due. now_ns:
 * the present time, and next_ns: that of the next tick, both by CLOCK_MONOTONIC.
 *
 * Returns true if it has handled stops; the caller then calls the function again. Returns false if
 * the caller must handle other events now:
 * - way 1 is to be used;
 * - no thread has stopped until next_ns, or in way 2 for HEARTBEAT_EVERY_MS;
 * - an earlier call has left wait statuses (stops_take_more).
 */
must_check bool stops_take(struct stops *s, uint64_t now_ns, uint64_t next_ns);

/*
 * Call it when stops_take() has returned false. Returns true, in way 3 only, if the caller must
 * take the tick at next_ns now, without a turn of the event loop, which costs a system call.
 * Returns false at least every 40 ms, so that messages wait for some ticks only.
 */
must_check bool stops_spare_loop(struct stops *s, uint64_t next_ns);

/*
 * Ends way 3, until stops have been due for some ticks in a row again. Call it when no ticks
 * follow: before the tracer ends.
 */
void stops_by_signal(struct stops *s);

/* Handles wait statuses that an earlier call has left. Call it after the event loop has run. */
void stops_take_more(struct stops *s);

#endif
