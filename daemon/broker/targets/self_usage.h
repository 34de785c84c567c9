/*
 * The processor time and memory of the daemon's own processes, and each instance's share of them.
 *
 * Processor time is shared out: the time of capture and unwind by the time that they spent on the
 * instance, the time of ship by the bytes of the instance's chunks, the time of the broker in equal
 * parts. The shares of all instances add up to the whole, except for the time of unwind processes
 * that were freed (children.unwinds_gone). Memory is not shared out: each instance is charged the
 * whole memory of the processes that serve it.
 */
#ifndef DAEMON_BROKER_TARGETS_SELF_USAGE_H
#define DAEMON_BROKER_TARGETS_SELF_USAGE_H

#include "daemon/broker/children/child.h"
#include "daemon/broker/targets/instance.h"

enum self_usage_of {
	SELF_USAGE_BROKER,
	SELF_USAGE_CAPTURE,
	SELF_USAGE_UNWIND,
	SELF_USAGE_SHIP,
	SELF_USAGE_N
};

/*
 * Writes the totals of all processes of the daemon: of several unwind or ship processes, the sum of
 * their times and the largest memory. own: usage of the broker itself, here and below.
 */
void self_usage_of_all(const struct targets *ts, struct usage own, struct usage ret[SELF_USAGE_N]);

/*
 * Writes the shares of instance i. SELF_USAGE_UNWIND is the share of the unwind process of the
 * instance's owner.
 */
void self_usage_of_instance(const struct targets *ts, struct usage own, const struct instance *i,
			    struct usage ret[SELF_USAGE_N]);

#endif
