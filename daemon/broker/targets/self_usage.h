/*
 * What the daemon's own processes have used, and each instance's share of it.
 *
 * Processor time is shared out: of capture and of the unwind process by the time that they
 * spent on the instance, of ship by the bytes of the instance's chunks, of the broker in equal
 * parts. The shares of all known instances add up to the whole. Memory is not shared out: each
 * instance is given all memory of the processes that serve it.
 */
#ifndef DAEMON_BROKER_TARGETS_SELF_USAGE_H
#define DAEMON_BROKER_TARGETS_SELF_USAGE_H

#include "daemon/broker/children/child.h"
#include "daemon/broker/targets/instance.h"

enum self_usage_of {
	SELF_USAGE_BROKER,
	SELF_USAGE_CAPTURE,
	SELF_USAGE_UNWIND, /* all of them: the sum of times, the largest memory */
	SELF_USAGE_SHIP,
	SELF_USAGE_N
};

/* own: what the broker itself has used. */
void self_usage_of_all(const struct targets *ts, struct usage own, struct usage ret[SELF_USAGE_N]);

void self_usage_of_instance(const struct targets *ts, struct usage own, const struct instance *i,
			    struct usage ret[SELF_USAGE_N]);

#endif
