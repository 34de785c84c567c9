/*
 * Prints the table of targets of `sentry-profctl status`, with lines above it that say what is
 * wrong at the daemon. The input is the status, a JSON object that the daemon sends.
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
 * Writes the lines of status_table_faults() and the table to out. json, of size bytes, is the whole
 * status. width is the width of the terminal in characters; 0: out is no terminal. If a row of the
 * table is wider, the last error of its target gets a line of its own. Returns 0, -EPROTO if json
 * is not a status, or -ENOMEM.
 */
must_check int status_table_print(const char *json, size_t size, size_t width, FILE *out);

/*
 * Writes a line for each fault of the daemon: degraded states, servers that refuse or limit it,
 * files that it does not read, and lacks of CPU time. daemon is the member "daemon" of the status.
 */
void status_table_faults(const json_t *daemon, FILE *out);

#endif
