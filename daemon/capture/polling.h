/*
 * Decides whether the tracer polls for the stops of a tick before it sleeps until they come.
 *
 * An interrupted thread that runs on another processor stops within some 20 us. If the tracer
 * sleeps meanwhile, an idle processor has to be woken for it at each stop. On a virtual machine
 * that takes longer than the stop, since the hypervisor does it, and the thread stays stopped
 * meanwhile. If the thread needs the tracer's own processor, or stays in a system call, a poll is
 * of no use and keeps that processor from the thread. Nothing tells the two cases apart in advance.
 * So after polls that were of no use, more and more ticks are not polled for: 1, 3, 7, 15, up to
 * POLLING_PAUSE_MAX. After a useful poll the next tick is polled for again.
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

/* All 0: the next tick is polled for. */
struct polling {
	unsigned int pause; /* the number of ticks without a poll that follow the last poll */
	unsigned int left;  /* the number of such ticks that have not come yet */
};

/* Returns true if the stops of this tick are to be polled for. Call it once a tick. */
must_check bool polling_is_due(struct polling *p);

/* Notes the end of a poll. all_came: no stop was due any more before POLLING_NS had passed. */
void polling_ended(struct polling *p, bool all_came);

#endif
