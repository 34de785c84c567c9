/*
 * The heartbeat page: memory that capture writes and the broker reads. It shows that capture
 * makes progress, and which memory capture is about to read. It also has the counters, so
 * that they survive a capture that is killed.
 */
#ifndef DAEMON_MSG_HEARTBEAT_H
#define DAEMON_MSG_HEARTBEAT_H

#include "lib/capture/counters.h"

/* The maximum number of targets at a time. */
#define HEARTBEAT_SLOTS 256

/* The scheduling of the sampler: the strongest that was permitted. */
enum heartbeat_scheduler {
	SCHEDULER_NORMAL,
	SCHEDULER_NICE,
	SCHEDULER_FIFO,
};

struct heartbeat {
	struct capture_beat beat;
	uint32_t scheduler; /* enum heartbeat_scheduler */
	uint32_t cpu_quota; /* of capture's control group, percent of a processor; 0: none */
	struct capture_counters slots[HEARTBEAT_SLOTS];
};

/* Capture beats at least this often. If the last beat is this old, capture hangs. */
#define HEARTBEAT_EVERY_MS 100
#define HEARTBEAT_DEAD_MS  1000

#endif
