/*
 * Sums of the statistics (struct instance_figures: what was sampled, unwound and delivered) of
 * one run of the profiler, of all runs on a process, or of all processes.
 */
#ifndef DAEMON_BROKER_TARGETS_FIGURES_H
#define DAEMON_BROKER_TARGETS_FIGURES_H

#include "daemon/broker/targets/targets.h"

/*
 * Adds *more to *sum. lowest_hz becomes the lower of both; lowered_ns and exceeded_ns become the
 * longer.
 */
void figures_add(struct instance_figures *sum, const struct instance_figures *more);

/*
 * Sums the counters of capture for a target: of earlier capture processes and of the present
 * one.
 */
void figures_capture(const struct targets *ts, const struct target *t,
		     struct capture_counters *ret);

/* Returns the statistics of one run, without its chunks, which are counted in its instance. */
void figures_of_target(const struct targets *ts, const struct target *t,
		       struct instance_figures *ret);

/* Sums the statistics of all runs on a process, until now. */
void figures_of_instance(const struct targets *ts, const struct instance *i,
			 struct instance_figures *ret);

/* Sums the statistics of all instances, those included that were freed. */
void figures_of_all(const struct targets *ts, struct instance_figures *ret);

#endif
