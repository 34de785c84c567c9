/*
 * The processor time and memory of the daemon's own processes, and each instance's share of them.
 *
 * Processor time is shared out among the instances:
 *
 *     capture    by the time that capture spent on the instance
 *     unwind     of each owner's key: by the time that unwind processes spent on the instance
 *     ship       all ships together: by the bytes of the instance's chunks
 *     broker     in equal parts, one for each instance of targets.instances
 *
 * If that time, or those bytes, are 0 for all instances, the parts are equal. The shares of all
 * instances add up to the times of self_usage_of_all(), except for the time of unwind processes
 * that were freed (children.unwinds_gone) or serve no instance. Memory is not shared out: each
 * instance is charged the whole memory of the broker, of capture, of the unwind process of its
 * owner's key, and of the largest ship, whether that ship serves the instance or not.
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
 * Writes to ret the usage (children/child.h) of the daemon's processes, by kind. For several unwind
 * or ship processes: the sum of their times, and the largest memory. own, here and below: the
 * usage of the broker itself.
 */
void self_usage_of_all(const struct targets *ts, struct usage own, struct usage ret[SELF_USAGE_N]);

/*
 * Writes to ret the shares of instance i, which must be in targets.instances. SELF_USAGE_UNWIND is
 * zeros if the owner's key of i has no unwind process.
 */
void self_usage_of_instance(const struct targets *ts, struct usage own, const struct instance *i,
			    struct usage ret[SELF_USAGE_N]);

#endif
