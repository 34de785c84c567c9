/* The statistics of --stats: one line of JSON. */
#ifndef DAEMON_BROKER_REPORT_STATS_H
#define DAEMON_BROKER_REPORT_STATS_H

#include <stdbool.h>

#include "lib/base/util.h"

struct parts;

/* Writes them to fd and closes it. Returns 0 or -errno. */
must_check int stats_write(const struct parts *parts, int fd);
/* What the last capture runs under: fifo, nice or normal. */
const char *stats_scheduler(const struct parts *parts);
/* Of its control group, in percent of a core; 0: none. */
unsigned int stats_cpu_quota(const struct parts *parts);

#endif
