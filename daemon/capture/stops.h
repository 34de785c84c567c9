/*
 * Waits for stops of tracees. A stop is due while a thread has been interrupted and has not stopped
 * yet (capture_pending). The module uses the cheapest of three ways:
 * - by SIGCHLD in the event loop, while no stop is due;
 * - by a wait for SIGCHLD alone, while stops are due;
 * - by a wait for the stops themselves, from tick to tick, if stops are due at each tick: then a
 *   stop is taken by one system call, which costs half as much (daemon/capture/await.h). Before it
 *   sleeps, the tracer polls for a moment where that has been of use (daemon/capture/polling.h).
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
	bool behind;	    /* more wait statuses are there than one call takes */
	uint64_t period_ns; /* of the ticks */
	unsigned int ticks; /* in a row after which stops were due */
	uint64_t events_ns; /* when the event loop runs again at the latest */
	struct await await;
	struct polling polling;
	struct heartbeat_polls *counts; /* in the heartbeat page */
	bool polls;			/* the stops of the last tick are to be polled for */
};

/*
 * Blocks SIGCHLD, SIGALRM and AWAIT_SIGNAL, so it must be called before any other thread is made.
 * counts is borrowed and must outlive s. Returns 0 or -errno.
 */
must_check int stops_init(struct stops *s, struct loop *loop, struct capture *capture,
			  struct heartbeat_polls *counts);

/* Call it after each tick of t, when all threads have been interrupted. */
void stops_tick(struct stops *s, const struct ticker *t);

/*
 * Waits for the next stop, or for next_ns, the time of the next tick, while stops are due. In the
 * third way, handles all stops that are due, and then others one by one. Returns true if stops were
 * handled: the caller calls the function again. Returns false if the caller must handle other
 * events now: no stop is due, no thread has stopped by next_ns, or there are more wait statuses
 * than one call handles.
 */
must_check bool stops_take(struct stops *s, uint64_t now_ns, uint64_t next_ns);

/*
 * Call it when stops_take() has returned false. Returns true if the caller must take the tick at
 * next_ns now, and not run the event loop before. So, in the third way, a tick costs no system call
 * for the loop. The loop runs every 40 ms nevertheless, so messages wait for some ticks only.
 */
must_check bool stops_spare_loop(struct stops *s, uint64_t next_ns);

/*
 * Ends the third way, until stops have been due for some ticks again. Call it when no ticks follow:
 * before the tracing thread ends.
 */
void stops_by_signal(struct stops *s);

/* Handles wait statuses that were left. Call it after each turn of the event loop. */
void stops_take_more(struct stops *s);

#endif
