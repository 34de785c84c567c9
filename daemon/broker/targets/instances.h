/*
 * Adds instances, starts and stops the runs of the profiler on them, and frees those that
 * have ended. What is wanted of an instance is decided by lifecycle.h, and carried out in
 * one place, instances_check.
 */
#ifndef DAEMON_BROKER_TARGETS_INSTANCES_H
#define DAEMON_BROKER_TARGETS_INSTANCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/targets/instance.h"
#include "daemon/process/process.h"
#include "lib/base/util.h"

/*
 * A process that --pid names. Looks at it; on a fault prints one line and
 * returns -errno.
 */
must_check int instance_add_given(struct targets *ts, int32_t pid);

/*
 * Adds a process that is no instance yet: to be profiled, as those of --pid; or, where the origin
 * is INSTANCE_RECORDED, for its recordings, whose reader is to be counted then.
 * The instance takes the pidfd out of p.
 */
must_check int instance_add_attached(struct targets *ts, struct process *p,
				     enum instance_origin origin, struct instance **ret);

/*
 * A process that capture says a target has forked: to be profiled, if capture
 * traces it. Where it has ended, or there is no room, it is not.
 */
void instance_add_child(struct targets *ts, int32_t pid);

/*
 * A process that a section of the configuration matches; the instance takes the pidfd
 * out of p. Returns 0, or -ENOSPC, -ENOMEM or an error of the loop.
 */
must_check int instance_add(struct targets *ts, struct process *p, size_t section);

/* Takes note of the ends of those that were added before there was a loop. */
must_check int instances_watch(struct targets *ts);

/* The sampling rate of the instance's runs: no higher than the timer's. */
uint32_t instance_rate_hz(const struct instance *i);

/* Sentry and files are to have its profile now. */
bool instance_is_wanted(const struct instance *i);

/*
 * Each turn: starts and stops runs as lifecycle_wants says. Frees nothing;
 * appends nothing to the list of instances.
 */
void instances_check(struct targets *ts);

/*
 * At the end of a turn, after targets_sweep and delivery_sweep: frees the
 * instances that ended or were removed, and that no target, no envelope and no
 * client refers to any more. The only place that takes an instance out of the
 * list.
 */
void instances_sweep(struct targets *ts);

/* One is profiled, or will be. */
bool instances_any_open(const struct targets *ts);

#endif
