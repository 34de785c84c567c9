/*
 * Timeouts for child processes that the broker waits for. The timeout ends PATIENCE_IDLE_NS after
 * the last progress of the process, at the latest PATIENCE_BUSY_NS after patience_start(). A
 * process that is runnable but gets no processor, as on a machine whose host is busy, counts as
 * one that makes progress.
 */
#ifndef DAEMON_BROKER_CHILDREN_PATIENCE_H
#define DAEMON_BROKER_CHILDREN_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

#define PATIENCE_IDLE_NS (3 * NS_PER_SEC)
/* Less than the 90 s after which a service manager kills the daemon. */
#define PATIENCE_BUSY_NS (30 * NS_PER_SEC)

struct patience {
	uint64_t began_ns;
	uint64_t busy_ns; /* when the process was last seen to make progress */
};

/* Starts the timeout. now_ns: any clock; the same one for patience_end_ns(). */
void patience_start(struct patience *p, uint64_t now_ns);

/*
 * Returns the time at which the timeout ends. Call it several times within PATIENCE_IDLE_NS,
 * since progress moves the end. busy: true if a process that the broker waits for makes progress
 * or is runnable. now_ns: the clock of patience_start().
 */
uint64_t patience_end_ns(struct patience *p, uint64_t now_ns, bool busy);

#endif
