/*
 * Timeouts of the broker for the work of other processes. A process that makes no progress
 * is given up after 3 s. A process that is runnable but gets no processor, as on a machine
 * whose host is busy, has 30 s.
 */
#ifndef DAEMON_BROKER_CHILDREN_PATIENCE_H
#define DAEMON_BROKER_CHILDREN_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

/* For a process that does nothing. */
#define PATIENCE_IDLE_NS (3 * NS_PER_SEC)
/* For one that works, or waits for a processor: less than a service manager's 90 s. */
#define PATIENCE_BUSY_NS (30 * NS_PER_SEC)

struct patience {
	uint64_t began_ns;
	uint64_t busy_ns; /* when the work was last seen to go on */
};

void patience_start(struct patience *p, uint64_t now_ns);

/*
 * Returns when the timeout ends, as far as is known; to be called several times within
 * PATIENCE_IDLE_NS. busy: a process that is waited for works, or waits for a processor.
 */
uint64_t patience_end_ns(struct patience *p, uint64_t now_ns, bool busy);

#endif
