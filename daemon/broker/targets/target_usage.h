/*
 * Processor time and memory of targets, about once a second: read from the kernel, without a
 * stop of a thread, and sent to the unwind process, which puts them into the chunk.
 */
#ifndef DAEMON_BROKER_TARGETS_TARGET_USAGE_H
#define DAEMON_BROKER_TARGETS_TARGET_USAGE_H

#include <stdint.h>

#include "daemon/broker/targets/targets.h"
#include "lib/base/util.h"

/*
 * At every turn: reads and sends the usage of targets whose second is over. An unwind process
 * gets the next message only after it has answered the last one, so that its socket never
 * fills. Where it has more targets than a message holds, each is read less often.
 */
void target_usage_check(struct targets *ts);

/* Processor time between two readings, in millionths of a percent of one processor. */
uint64_t target_usage_percent(const struct target_usage *from, const struct target_usage *to);

#endif
