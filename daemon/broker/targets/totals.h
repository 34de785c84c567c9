/*
 * Keeps the statistics of capture and unwind processes that died, and counts what was lost with
 * them and until they were replaced.
 */
#ifndef DAEMON_BROKER_TARGETS_TOTALS_H
#define DAEMON_BROKER_TARGETS_TOTALS_H

#include <stdint.h>

#include "daemon/broker/targets/targets.h"

/*
 * Capture has ended, or hangs: adds its counters to those of the targets. hung_target: the id of
 * the target at which it hangs, which is not profiled any more; 0: capture has ended.
 */
void targets_capture_died(struct targets *ts, uint32_t hung_target);
/* The unwind process has ended: counts the chunks that it was making as lost. */
void targets_unwind_died(struct targets *ts, struct unwind *u);
/*
 * Counts the ticks since capture died as missed, if the target would have been sampled. now_ns:
 * CLOCK_MONOTONIC.
 */
void target_count_absence(const struct targets *ts, struct target *t, uint64_t now_ns);
/*
 * The broker was stopped, or had detached from all targets, until now_ns: the ticks until then
 * are not counted as missed.
 */
void targets_resumed(struct targets *ts, uint64_t now_ns);

#endif
