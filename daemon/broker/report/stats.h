/* Writes the statistics of --stats as JSON, when the broker ends. */
#ifndef DAEMON_BROKER_REPORT_STATS_H
#define DAEMON_BROKER_REPORT_STATS_H

#include "lib/base/util.h"

struct parts;

/* Writes the statistics to fd and closes it. Returns 0 or -errno. */
must_check int stats_write(const struct parts *parts, int fd);
/* Returns the scheduling of the last capture: "fifo", "nice" or "normal". */
const char *stats_scheduler(const struct parts *parts);
/* Returns the CPU quota of the last capture's control group, in percent of one core; 0: none. */
unsigned int stats_cpu_quota(const struct parts *parts);

#endif
