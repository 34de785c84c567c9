/*
 * How the tracer comes to know of stops. By SIGCHLD, as it waits for other
 * things, too; while stops are due, by a wait for that signal, or, where they
 * are due at each tick, by a wait for the stops themselves, from tick to tick:
 * as long as each is taken by one call, it costs half as many (daemon/capture/await.h).
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
	bool behind;	    /* more wait statuses are there than were taken */
	uint64_t period_ns; /* of the ticks */
	unsigned int ticks; /* in a row, after which stops were due */
	uint64_t events_ns; /* when the loop's have their turn again */
	struct await await;
};

/* Before any other thread is made: signals are blocked. 0 or -errno. */
must_check int stops_init(struct stops *s, struct loop *loop, struct capture *capture);

/* At a tick of t that was just taken, after all have been interrupted. */
void stops_tick(struct stops *s, const struct ticker *t);

/*
 * As long as threads are on their way to a stop: the next one, or next_ns, the
 * next tick, whichever comes first; while it rings, all of them, and then those
 * that nobody has asked for, one by one. False: nothing has stopped, or there
 * is more than was to be taken at once, and the others have their turn.
 */
must_check bool stops_take(struct stops *s, uint64_t now_ns, uint64_t next_ns);

/*
 * When stops_take has returned false: true if the tick at next_ns is to be
 * taken, and the loop not asked for what else there is: while it rings a tick
 * takes no call for that, and messages wait for a few ticks.
 */
must_check bool stops_spare_loop(struct stops *s, uint64_t next_ns);

/* From here on by SIGCHLD, until stops have been due for some ticks again. */
void stops_rest(struct stops *s);

/* After the others. */
void stops_take_rest(struct stops *s);

#endif
