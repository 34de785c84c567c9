/*
 * Prints the status of the daemon for `sentry-profctl status`: lines about the daemon and its
 * faults, then the table of targets. The input is the status, a JSON object that the daemon sends.
 *
 * The daemon may be of another version: a missing value is shown as "-", and unknown keys are
 * ignored.
 */
#ifndef DAEMON_CTL_COMMON_STATUS_TABLE_H
#define DAEMON_CTL_COMMON_STATUS_TABLE_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#include "lib/base/util.h"

/*
 * Writes to out, in this order: a line about the daemon, the lines of status_table_faults(), a line
 * for each section of the configuration that has a fault or no process, and the table, if there is
 * a target. json, of size bytes, is the whole status. width is the width of the terminal in
 * characters; 0: no limit. If a row of the table is wider, its last column, LAST ERROR, goes to a
 * line of its own. Returns 0, -EPROTO if json is not a status, or -ENOMEM.
 */
must_check int status_table_print(const char *json, size_t size, size_t width, FILE *out);

/*
 * Writes a line to out for each fault. daemon is the member "daemon" of the status. The faults are:
 * - the CPU budget lowers the rates of targets, or leaves targets unsampled;
 * - the daemon's control group has a CPU quota: when it is used up, a thread that is being sampled
 *   stays stopped until the next period of the quota;
 * - a server refuses or limits the daemon, or the server's clock differs from that of this host;
 * - a degraded state;
 * - a file that is no longer read, because unwind processes died at it.
 */
void status_table_faults(const json_t *daemon, FILE *out);

#endif
