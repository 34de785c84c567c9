/*
 * Decides whether the tracer polls for the stops of a tick before it sleeps until they come. To
 * poll is to ask the kernel for stops again and again without a sleep, as daemon/capture/stops.c
 * does for POLLING_NS at most.
 *
 * An interrupted thread that runs on another processor stops within some 20 us. If the tracer
 * sleeps meanwhile, each stop has to wake an idle processor for the tracer, and the thread stays
 * stopped until then. On a virtual machine the hypervisor wakes the processor, which takes longer
 * than the stop itself. If the thread needs the tracer's own processor, or stays in a system call,
 * a poll is useless and keeps that processor from the thread. Nothing tells the two cases apart in
 * advance. So after a useless poll the tracer leaves out the next polls: 1 after the first useless
 * poll in a row, 3 after the second, then 7, 15 and so on, up to POLLING_PAUSE_MAX. After a useful
 * poll the tracer polls at the next tick again.
 */
#ifndef DAEMON_CAPTURE_POLLING_H
#define DAEMON_CAPTURE_POLLING_H

#include <stdbool.h>

#include "lib/base/clock.h"
#include "lib/base/util.h"

/* The longest poll. Most stops on other processors of a virtual machine come within this time. */
#define POLLING_NS (50 * NS_PER_US)

/*
 * The most ticks in a row without a poll. At 101 Hz a useless poll after so many ticks takes 0.01 %
 * of a processor.
 */
#define POLLING_PAUSE_MAX 63

/* All 0: the tracer polls at the next tick. */
struct polling {
	unsigned int pause; /* the number of ticks without a poll that follow the last poll */
	unsigned int left;  /* the number of such ticks that have not come yet */
};

/* Returns true if the tracer must poll now. Call it once after each tick that has due stops. */
must_check bool polling_is_due(struct polling *p);

/* Call it at the end of a poll. all_came: all stops came during the poll, so it was useful. */
void polling_ended(struct polling *p, bool all_came);

#endif
