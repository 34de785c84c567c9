/*
 * The priority of the tracer, and the limit on its share of a processor: the tracer runs before the
 * threads that it stops, without taking the machine from them.
 */
#ifndef DAEMON_CAPTURE_REALTIME_H
#define DAEMON_CAPTURE_REALTIME_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/msg/heartbeat.h"

struct realtime {
	enum heartbeat_scheduler scheduler;
	int priority; /* under SCHED_FIFO */
	/* The share is used up: no ticks are to be given. */
	bool exceeded;
	uint64_t window_ns; /* start of the window */
	uint64_t look_ns;   /* when the CPU clock was last read */
	uint64_t seen_ns;   /* the CPU clock at that time */
	uint64_t used_ns;   /* the CPU clock at the start of the window */
	uint64_t paused_ns; /* the CPU clock at the last pause */
};

/*
 * Sets SCHED_FIFO, so that a stopped thread does not wait for the tracer to get a processor, and
 * ticks are not late. Some control groups refuse it: then a high priority among ordinary processes,
 * or none. Logs which.
 */
void realtime_start(struct realtime *r);

/*
 * To be called in each round of events; now: CLOCK_MONOTONIC. Sets the priority above the given
 * real-time priority of the sampled threads (0: none), as far as there is one above, and updates
 * exceeded.
 */
void realtime_keep(struct realtime *r, int priority, uint64_t now);

#endif
