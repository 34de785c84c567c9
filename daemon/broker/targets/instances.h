/*
 * Adds instances, starts and stops runs of the profiler on them, and frees instances that have
 * ended. lifecycle.h decides what is wanted of an instance; instances_check() is the only place
 * that carries it out.
 */
#ifndef DAEMON_BROKER_TARGETS_INSTANCES_H
#define DAEMON_BROKER_TARGETS_INSTANCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/targets/instance.h"
#include "daemon/process/process.h"
#include "lib/base/util.h"

/* Adds a process that --pid names. On an error prints one line and returns -errno. */
must_check int instance_add_given(struct targets *ts, int32_t pid);

/*
 * Adds a process that is no instance yet. It is profiled as those of --pid are. With the origin
 * INSTANCE_RECORDED it serves recordings only; the caller then adds 1 to the instance's
 * n_recordings. The instance takes the pidfd out of p. Returns 0, -ENOSPC (INSTANCES_MAX), -ENOMEM
 * or an error of the loop.
 */
must_check int instance_add_attached(struct targets *ts, struct process *p,
				     enum instance_origin origin, struct instance **ret);

/*
 * Adds a child that, by capture's report, a target has forked, if capture traces the child.
 * Otherwise, for example if the child has ended or there are too many instances, logs a line at
 * debug level.
 */
void instance_add_child(struct targets *ts, int32_t pid);

/*
 * To be called when capture has attached to the run's process, with --children: adds the children
 * that the process has forked while capture did not trace it, as between two runs. Children of a
 * process in a crash are not added: one of them may be its crash reporter.
 */
void instance_add_missed_children(struct targets *ts, struct run *run);
/* Does the same for all processes that capture is attached to. */
void instances_add_missed_children(struct targets *ts);

/*
 * Adds a process that section, an index in the configuration, matches. The instance takes the
 * pidfd out of p. Returns 0, -ENOSPC (INSTANCES_MAX; logged once), -ENOMEM or an error of the
 * loop.
 */
must_check int instance_add(struct targets *ts, struct process *p, size_t section);

/*
 * Watches the pidfds of the instances that were added before the event loop existed. Returns 0
 * or an error of loop_add().
 */
must_check int instances_watch(struct targets *ts);

/* Returns the sampling rate of the instance's runs: the configured one, at most the timer's. */
uint32_t instance_rate_hz(const struct instance *i);

/*
 * To be called at every turn: starts and stops runs as lifecycle_wants() says. Frees no instance
 * and adds none.
 */
void instances_check(struct targets *ts);

/*
 * To be called at the end of a turn, after targets_sweep() and delivery_sweep(): frees the
 * instances that have ended or were removed and that no run, envelope or recording refers to.
 * No other function removes an instance from the list.
 */
void instances_sweep(struct targets *ts);

/* Returns true if an instance is profiled or may still be. */
bool instances_any_open(const struct targets *ts);

#endif
