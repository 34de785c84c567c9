/*
 * The heartbeat page: memory that one capture process writes and the broker
 * reads. It shows that capture is alive and what it is about to touch, and
 * keeps the counters, so that they outlive a capture that has to be killed.
 */
#ifndef DAEMON_MSG_HEARTBEAT_H
#define DAEMON_MSG_HEARTBEAT_H

#include "lib/capture/counters.h"

/* Targets at a time. */
#define HEARTBEAT_SLOTS 256

/* What the sampler runs under: the strongest that was permitted. */
enum heartbeat_scheduler {
	SCHEDULER_NORMAL,
	SCHEDULER_NICE,
	SCHEDULER_FIFO,
};

struct heartbeat {
	struct capture_beat beat;
	uint32_t scheduler; /* enum heartbeat_scheduler */
	uint32_t cpu_quota; /* of capture's control group, percent; 0: none */
	struct capture_counters slots[HEARTBEAT_SLOTS];
};

/* Capture beats this often at least; a beat this old means that it hangs. */
#define HEARTBEAT_EVERY_MS 100
#define HEARTBEAT_DEAD_MS  1000

#endif
