/*
 * Running before others without taking the machine from them: the priority of
 * the sampler, and the limit on its share of a processor.
 */
#ifndef DAEMON_CAPTURE_REALTIME_H
#define DAEMON_CAPTURE_REALTIME_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/msg/heartbeat.h"

struct realtime {
	enum heartbeat_scheduler scheduler;
	int priority; /* under SCHED_FIFO */
	/* Its share is used up: nobody is to be looked at. */
	bool exceeded;
	uint64_t window_ns; /* its start */
	uint64_t look_ns;   /* when the processor's clock was last asked */
	uint64_t seen_ns;   /* what it said */
	uint64_t used_ns;   /* of the processor, at the window's start */
	uint64_t rested_ns; /* of the processor, at the last rest */
};

/*
 * SCHED_FIFO, so that a stopped thread does not wait for a processor to be
 * continued, and ticks are not late. Refused in some cgroups: then a high
 * priority among ordinary processes, or none. Logs which.
 */
void realtime_start(struct realtime *r);

/*
 * Every now and then; now is of CLOCK_MONOTONIC. Goes above the real-time
 * priority that the threads have that it looks at (0: none), as far as there is
 * one above, and renews exceeded.
 */
void realtime_keep(struct realtime *r, int priority, uint64_t now);

#endif
