/*
 * Waits for stops of tracees. A stop is due while a thread has been interrupted and has not stopped
 * yet (capture_pending). The module uses the cheapest of three ways:
 * 1. While no stop is due, the event loop waits for SIGCHLD and other events.
 * 2. While stops are due, the tracer waits for SIGCHLD alone.
 * 3. After some ticks in a row with due stops, the tracer waits for the stops themselves, until the
 *    next tick (daemon/capture/await.h). A stop then costs one system call, half as much as in way
 *    2. Before the tracer sleeps, it polls for a moment if polls have been useful (polling.h). Way
 *    3 does not begin with more than 128 threads or a period above HEARTBEAT_EVERY_MS.
 *
 * At its start a tracer calls await_enter(). Then it runs in rounds:
 *
 *     if stops_take()                 the round is done: stops were handled
 *     else if stops_spare_loop()      takes the tick
 *     else                            runs the event loop once, without waiting if `behind` is
 *                                     true, and calls stops_take_more()
 *
 * The event loop takes ticks, too (ticker.h). The tracer takes a tick by ticker_pass() in way 3,
 * while await.is_set is true, and by ticker_take() otherwise. After each tick it calls
 * stops_tick().
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
	sigset_t child_signal; /* SIGCHLD */
	int signal_fd;	       /* signalfd(2) of SIGCHLD, for the event loop */
	struct loop_source *source;
	bool behind;		       /* more wait statuses have come than one call handles */
	uint64_t period_ns;	       /* of the ticks */
	unsigned int ticks_with_stops; /* in a row, up to the last tick: ticks with due stops */
	uint64_t events_ns;	       /* from this time on stops_spare_loop() returns false */
	struct await await;
	struct polling polling;
	struct heartbeat_polls *counts; /* the numbers of polls, in the heartbeat page */
	bool polls_next;		/* the next stops_take() begins with a poll, if in way 3 */
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
 * Chooses the way, waits for stops in way 2 or 3, and handles them. In way 3 it waits even if no
 * stop is due. now_ns: the present time; next_ns: the time of the next tick (CLOCK_MONOTONIC).
 *
 * Returns true if it has handled stops; the caller then calls the function again. Returns false if
 * the caller must call stops_spare_loop():
 * - the way is 1;
 * - next_ns has come;
 * - in way 2 no thread has stopped for HEARTBEAT_EVERY_MS;
 * - way 3 has ended, because the tracer has no tracees;
 * - an earlier call has left wait statuses, which stops_take_more() handles.
 */
must_check bool stops_take(struct stops *s, uint64_t now_ns, uint64_t next_ns);

/*
 * Call it when stops_take() has returned false. Returns true if, in way 3, next_ns has come: the
 * caller takes that tick, and saves the system call of the event loop. Returns false if the caller
 * must run the event loop: in ways 1 and 2 always; in way 3 while wait statuses are left (behind),
 * and every 40 ms, so that messages wait for some ticks only.
 */
must_check bool stops_spare_loop(struct stops *s, uint64_t next_ns);

/*
 * Ends way 3, so that the tracer waits for SIGCHLD again, and handles the stops that have come. In
 * ways 1 and 2 it has no effect. stops_tick() may begin way 3 again. Call it before the tracer
 * ends, since no ticks follow then.
 */
void stops_by_signal(struct stops *s);

/*
 * Handles the wait statuses that an earlier call has left, if any. Call it after each round of the
 * event loop.
 */
void stops_take_more(struct stops *s);

#endif
