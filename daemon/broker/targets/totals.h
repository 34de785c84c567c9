/*
 * Keeps the statistics of capture and unwind processes that died. Counts the samples and chunks
 * that were lost with such a process, and the ticks that were missed until its successor ran.
 */
#ifndef DAEMON_BROKER_TARGETS_TOTALS_H
#define DAEMON_BROKER_TARGETS_TOTALS_H

#include <stdint.h>

#include "daemon/broker/targets/targets.h"

/*
 * Capture has ended, or hangs: adds its counters to those of the targets. hung_target: the id of
 * the target on which capture hangs; its profiling ends. 0: capture has ended.
 */
void targets_capture_died(struct targets *ts, uint32_t hung_target);
/* The unwind process has ended: counts the chunks that it was making as lost. */
void targets_unwind_died(struct targets *ts, struct unwind *u);
/*
 * Called when the target leaves the state TARGET_PROFILED, or when a new capture process has
 * attached to it. If capture has died while the target was profiled, counts the ticks from then
 * until now_ns (CLOCK_MONOTONIC) as missed.
 */
void target_count_absence(const struct targets *ts, struct target *t, uint64_t now_ns);
/*
 * Called when the broker continues after a pause (SIGTSTP), in which it was stopped or detached
 * from all targets. Ticks before now_ns (CLOCK_MONOTONIC) are not counted as missed.
 */
void targets_resumed(struct targets *ts, uint64_t now_ns);

#endif
