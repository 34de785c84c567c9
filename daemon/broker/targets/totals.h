/*
 * What is kept of capture and unwind processes that died: their figures, and what was lost
 * with them and until others took their place.
 */
#ifndef DAEMON_BROKER_TARGETS_TOTALS_H
#define DAEMON_BROKER_TARGETS_TOTALS_H

#include <stdint.h>

#include "daemon/broker/targets/targets.h"

/*
 * Capture is gone, or hangs: keeps its counters. hung_target is the id of the target that
 * made it hang, which is left out from now on; 0: no target did, and capture has ended.
 */
void targets_capture_died(struct targets *ts, uint32_t hung_target);
/* The unwind process has ended: the chunks that it was making are lost. */
void targets_unwind_died(struct targets *ts, struct unwind *u);
/* Ticks at which the target was profiled, had there been a capture, are missed. */
void target_count_absence(const struct targets *ts, struct target *t, uint64_t now_ns);
/* The broker was stopped, or had let go of all targets, until now: these ticks do not count. */
void targets_resumed(struct targets *ts, uint64_t now_ns);

#endif
