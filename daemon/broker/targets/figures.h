/*
 * Sums of the figures of what was sampled, unwound and delivered: of one run of the profiler,
 * of all runs on a process, and of all processes.
 */
#ifndef DAEMON_BROKER_TARGETS_FIGURES_H
#define DAEMON_BROKER_TARGETS_FIGURES_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/targets/targets.h"

/* Adds more to sum; lowest_hz is the lower, times of the governor the longer.
 */
void figures_add(struct instance_figures *sum, const struct instance_figures *more);

/* All figures of capture for a target, dead ones and the living. */
void figures_capture(const struct targets *ts, const struct target *t,
		     struct capture_counters *ret);

/* Of this run, without its chunks: those are counted in its instance. */
void figures_of_target(const struct targets *ts, const struct target *t,
		       struct instance_figures *ret);

/* Of all its runs, until now. */
void figures_of_instance(const struct targets *ts, const struct instance *i,
			 struct instance_figures *ret);

/* Of all instances, those included that are gone. */
void figures_of_all(const struct targets *ts, struct instance_figures *ret);

#endif
