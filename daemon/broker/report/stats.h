/*
 * Writes the statistics of sentry-profd as JSON into the file of --stats, when the broker ends.
 * modules, in both functions: all parts of the broker (report/modules.h).
 */
#ifndef DAEMON_BROKER_REPORT_STATS_H
#define DAEMON_BROKER_REPORT_STATS_H

#include <stdio.h>

#include "lib/base/util.h"

struct modules;

/* Writes the statistics to fd and closes fd. Returns 0 or -errno. */
must_check int stats_write(const struct modules *modules, int fd);
/*
 * Writes three members of a JSON object, for the statistics and for the status (status.h):
 * "scheduler", "cpu_quota_percent" and "polls", which the newest capture process reports in its
 * heartbeat page. Before the first capture process they are "normal" and zeros. The string `space`
 * comes before each member, and a comma after each.
 */
void stats_put_capture(FILE *out, const struct modules *modules, const char *space);

#endif
