/*
 * Waits for stops of tracees, in the cheapest of three ways:
 * - by SIGCHLD in the event loop, while no stop is due;
 * - by a wait for SIGCHLD alone, while stops are due;
 * - by a wait for the stops themselves, from tick to tick, if stops are due at each tick: then a
 *   stop is taken by one system call, which costs half as much (daemon/capture/await.h).
 */
#ifndef DAEMON_CAPTURE_STOPS_H
#define DAEMON_CAPTURE_STOPS_H

#include <signal.h>

#include "daemon/capture/await.h"
#include "daemon/capture/ticker.h"
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
};

/* Blocks the signals, so it must be called before any other thread is made. Returns 0 or -errno. */
must_check int stops_init(struct stops *s, struct loop *loop, struct capture *capture);

/* Call it after each tick of t, when all threads have been interrupted. */
void stops_tick(struct stops *s, const struct ticker *t);

/*
 * Waits for the next stop, or for next_ns, the time of the next tick, while stops are due. In the
 * third way, handles all stops that are due, and then others one by one. Returns false if the
 * caller must handle other events now: no thread has stopped, or there are more stops than one call
 * takes.
 */
must_check bool stops_take(struct stops *s, uint64_t now_ns, uint64_t next_ns);

/*
 * Call it when stops_take() has returned false. Returns true if the caller must take the tick at
 * next_ns without running the event loop before. So, in the third way, a tick costs no system call
 * for the loop, and messages wait for a few ticks.
 */
must_check bool stops_spare_loop(struct stops *s, uint64_t next_ns);

/* Goes back to SIGCHLD, until stops have been due for some ticks again. */
void stops_by_signal(struct stops *s);

/* Handles wait statuses that were left. Call it after each turn of the event loop. */
void stops_take_more(struct stops *s);

#endif
