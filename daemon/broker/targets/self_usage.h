/*
 * What the processes have used, and each instance's part of it.
 *
 * The processes are shared, so an instance has a share of each one's time: of
 * capture's and of its unwind process's by the time that these spent on it, of
 * ship's by the bytes of its chunks, of the broker's the same as the others.
 * The shares of all that are known make up the whole. Memory is not shared out:
 * an instance has all of the processes that serve it.
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
