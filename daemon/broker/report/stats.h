/* Writes the statistics of --stats as JSON, when the broker ends, and a part of status.h's JSON. */
#ifndef DAEMON_BROKER_REPORT_STATS_H
#define DAEMON_BROKER_REPORT_STATS_H

#include <stdio.h>

#include "lib/base/util.h"

struct modules;

/* Writes the statistics to fd and closes it. Returns 0 or -errno. */
must_check int stats_write(const struct modules *modules, int fd);
/*
 * Writes what the newest capture process says of itself in its heartbeat, as members of a JSON
 * object; before the first capture process, zeros and the scheduler "normal". The string `space`
 * comes before each member, and a comma after each.
 */
void stats_put_capture(FILE *out, const struct modules *modules, const char *space);

#endif
