/* Writes the statistics of --stats as JSON, when the broker ends, and parts of the status. */
#ifndef DAEMON_BROKER_REPORT_STATS_H
#define DAEMON_BROKER_REPORT_STATS_H

#include <stdio.h>

#include "lib/base/util.h"

struct modules;

/* Writes the statistics to fd and closes it. Returns 0 or -errno. */
must_check int stats_write(const struct modules *modules, int fd);
/*
 * Writes what the last capture says of itself, as members of an object. Before each member comes
 * the string `space`, after it a comma.
 */
void stats_put_capture(FILE *out, const struct modules *modules, const char *space);

#endif
