/*
 * Reads processor time and memory of profiled processes from the kernel about once a second,
 * without stopping a thread, and sends them to the unwind process, which puts them into the chunk.
 */
#ifndef DAEMON_BROKER_TARGETS_TARGET_USAGE_H
#define DAEMON_BROKER_TARGETS_TARGET_USAGE_H

#include <stdint.h>

#include "daemon/broker/targets/targets.h"
#include "lib/base/util.h"

/*
 * Call it at every turn of the broker: reads and sends the usage of targets whose last reading is a
 * second old or older. The first reading of a target is not sent, since there is none to compare
 * with. An unwind process gets the next message only after it has answered the last one, so that
 * its socket never fills. A message has room for MSG_USAGE_MAX targets: the others are read for the
 * next message.
 */
void target_usage_check(struct targets *ts);

/*
 * Returns the use of processors between two readings, in millionths of a percent of one processor:
 * 100,000,000 if one processor was busy all the time. Returns 0 if no processor time or no time has
 * passed between the readings.
 */
uint64_t target_usage_micropercent(const struct target_usage *from, const struct target_usage *to);

#endif
