/*
 * How much processor time and memory a target uses, about once a second: read
 * from the kernel while no thread is stopped for it, and told to unwind, which
 * puts it into the chunk.
 */
#ifndef DAEMON_BROKER_TARGETS_TARGET_USAGE_H
#define DAEMON_BROKER_TARGETS_TARGET_USAGE_H

#include <stdint.h>

#include "daemon/broker/targets/targets.h"
#include "lib/base/util.h"

/*
 * At every turn: those whose second is over. unwind has answered before it is
 * told the next, so that its socket never fills; of more targets than a message
 * holds each is measured less often.
 */
void target_usage_check(struct targets *ts);

/* Of the processor time of one interval: millionths of a percent of one CPU. */
uint64_t target_usage_percent(const struct target_usage *from, const struct target_usage *to);

#endif
