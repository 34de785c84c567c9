/*
 * Sets the priority of the tracer, the thread of capture that traces, so that the tracer runs
 * before the threads that it stops. Limits the tracer's share of a processor to one half, so that
 * other threads get time. The tracer itself calls both functions.
 *
 * The share is measured over windows of 100 ms, by the CPU clock of the process
 * (CLOCK_PROCESS_CPUTIME_ID): the other thread of the process uses no time. When the tracer has
 * used 50 ms in a window, realtime_keep() sets exceeded. The first call after the end of the window
 * clears exceeded. While exceeded is set, the caller takes no ticks, and handles stops as before.
 *
 * realtime_start() sets a limit for the case of a fault: the kernel kills the process if the tracer
 * runs for 0.5 s at a real-time priority without a sleep (RLIMIT_RTTIME). So realtime_keep() sleeps
 * for a moment each time that the tracer has used 100 ms of a processor.
 */
#ifndef DAEMON_CAPTURE_REALTIME_H
#define DAEMON_CAPTURE_REALTIME_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/msg/msg_capture.h"

struct realtime {
	enum heartbeat_scheduler scheduler;
	int priority; /* of the tracer, under SCHED_FIFO */
	/* The share of this window is used up: the caller must take no ticks. */
	bool exceeded;
	uint64_t window_ns;	/* start of the window */
	uint64_t read_ns;	/* when the CPU clock was last read */
	uint64_t seen_cpu_ns;	/* the CPU clock at that time */
	uint64_t window_cpu_ns; /* the CPU clock at the start of the window */
	uint64_t slept_cpu_ns;	/* the CPU clock when realtime_keep() last slept */
};

/*
 * Initialises *r and sets SCHED_FIFO, so that a stopped thread does not wait for the tracer to get
 * a processor, and ticks are not late. If the kernel refuses SCHED_FIFO, as in some control groups,
 * the tracer gets nice -20; if the kernel refuses that, too, normal priority. r->scheduler says
 * which. Logs a line at debug level.
 */
void realtime_start(struct realtime *r);

/*
 * Updates exceeded. Sleeps for 0.1 ms if the tracer has used 100 ms of a processor since the last
 * sleep. If realtime_start() has set SCHED_FIFO, also sets the tracer's scheduling: SCHED_OTHER
 * (with nice -20, if the kernel permits) while exceeded is set; otherwise SCHED_FIFO with priority
 * + 1, but 99 at most.
 *
 * priority: the highest real-time priority of the sampled threads (capture_realtime_priority()); 0:
 * none has one. now_ns: CLOCK_MONOTONIC. Call this function in each round of the event loop.
 */
void realtime_keep(struct realtime *r, int priority, uint64_t now_ns);

#endif
