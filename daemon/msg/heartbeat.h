/*
 * The heartbeat page: memory that capture writes and the broker reads (daemon/msg/page.h). The
 * page shows that capture makes progress, and from which target's memory capture is about to
 * read. It also has the counters of the targets, so that they survive a capture that is
 * killed.
 */
#ifndef DAEMON_MSG_HEARTBEAT_H
#define DAEMON_MSG_HEARTBEAT_H

#include "lib/capture/counters.h"

/* The maximum number of targets at a time. */
#define HEARTBEAT_SLOTS 256

/* The scheduling of capture's tracing thread: the strongest that the kernel permitted. */
enum heartbeat_scheduler {
	SCHEDULER_UNSET, /* the thread does not run yet */
	SCHEDULER_NORMAL,
	SCHEDULER_NICE,
	SCHEDULER_FIFO,
};

/* How often capture polled for the stops of a tick (daemon/capture/polling.h). */
struct heartbeat_polls {
	uint64_t useful;  /* polls during which all stops of the tick came */
	uint64_t useless; /* the other polls */
};

struct heartbeat {
	struct capture_beat beat;
	struct heartbeat_polls polls;
	uint32_t scheduler; /* enum heartbeat_scheduler */
	uint32_t cpu_quota; /* of capture's control group, percent of a processor; 0: none */
	struct capture_counters slots[HEARTBEAT_SLOTS]; /* by msg_target_add.slot */
};

/* Capture writes beat.time_ns at least this often. */
#define HEARTBEAT_EVERY_MS 100
/* If the last beat is this old, capture hangs, and the broker kills it. */
#define HEARTBEAT_DEAD_MS 1000

#endif
