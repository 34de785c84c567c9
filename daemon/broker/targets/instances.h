/*
 * Adds instances, starts and stops runs of the profiler on them, and frees instances that have
 * ended. lifecycle.h decides whether an instance is to be profiled; instances_check() starts and
 * stops runs by its decisions.
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
 * Adds a process that --pid names. Returns 0, or -errno after a line in the log that gives the
 * reason. Another process may trace it; capture attaches when that process has detached.
 */
must_check int instance_add_given(struct targets *ts, int32_t pid);

/*
 * Adds a process that is no instance yet. p: as process_look() has set it. origin:
 * INSTANCE_ATTACHED or INSTANCE_CHILD: the process is profiled as those of --pid are.
 * INSTANCE_RECORDED: the process serves recordings only, and the caller then adds 1 to the
 * instance's n_recordings. On success the instance has taken the pidfd of p: p->pidfd is -1.
 * Returns 0, -ENOSPC (INSTANCES_MAX), -ENOMEM, or an error of owner_read() or loop_add(); after an
 * error the pidfd stays in p.
 */
must_check int instance_add_attached(struct targets *ts, struct process *p,
				     enum instance_origin origin, struct instance **ret);

/*
 * Adds process pid, which capture has reported as a new child of a target. The pid may belong to
 * another process by now. So the function first checks that capture traces the process or, with
 * sampler = perf, that its parent is an instance. If the check or instance_add_attached() fails,
 * logs a line at debug level and adds nothing. Does nothing if pid is an instance already or the
 * broker is ending.
 */
void instance_add_child(struct targets *ts, int32_t pid);

/*
 * Call it when capture has attached to the process of run, if sentry-profd runs with --children.
 * Adds the children that the process has forked while capture did not trace the process, as between
 * two runs. If the process is in a crash, adds none, because a child may be the crash reporter.
 */
void instance_add_missed_children(struct targets *ts, struct run *run);
/*
 * Call it when MSG_CHILD_BORN has come with the id 0: capture may not know of some children. Calls
 * instance_add_missed_children() for each run in which capture has attached.
 */
void instances_add_missed_children(struct targets *ts);

/*
 * Adds a process that a section matches. section: its index in config.sections. p and the returned
 * values are as for instance_add_attached(); -ENOSPC is logged once.
 */
must_check int instance_add(struct targets *ts, struct process *p, size_t section);

/*
 * Watches the pidfds of the instances that were added before the event loop existed. Returns 0
 * or an error of loop_add().
 */
must_check int instances_watch(struct targets *ts);

/* Returns the full rate of the instance's runs: the configured one, at most state.timer_hz. */
uint32_t instance_rate_hz(const struct instance *i);

/*
 * Call it at every turn of the broker: starts and stops runs as lifecycle_wants() says and as
 * recordings need. Frees no instance and adds none. Does nothing unless state_is_profiling().
 */
void instances_check(struct targets *ts);

/*
 * Call it at the end of a turn, after targets_sweep() and delivery_sweep(): frees the instances
 * that are gone (instance_is_gone) and that no run, envelope or recording refers to. Instances of
 * --pid are not freed. Does nothing unless state_is_profiling(). No other function removes an
 * instance from the list.
 */
void instances_sweep(struct targets *ts);

/*
 * Returns true if at least one instance has an open run or can still get one: it is neither gone
 * nor INSTANCE_LEFT_OUT.
 */
bool instances_any_open(const struct targets *ts);

#endif
