/*
 * The table of `sentry-profctl status`, and the lines above it that say what is wrong, made of the
 * JSON that the daemon sends.
 *
 * The daemon may be of another version: a missing value is shown as "-", unknown keys are
 * ignored.
 */
#ifndef DAEMON_CTL_COMMON_STATUS_TABLE_H
#define DAEMON_CTL_COMMON_STATUS_TABLE_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#include "lib/base/util.h"

/*
 * Writes the table to out. Columns are as wide as their longest text. width: columns of the
 * terminal, 0 if out is not one; if a row is longer, its last error gets a line of its own.
 * Returns 0, -EPROTO if json is not a status, or -ENOMEM.
 */
must_check int status_table_print(const char *json, size_t size, size_t width, FILE *out);

/*
 * Writes a line for each thing that is wrong at the daemon: its degraded states, servers that
 * refuse or limit it, files that it does not read, and lacks of CPU time. daemon: the member of
 * this name of the status. status_table_print() writes these lines, too.
 */
void status_table_faults(const json_t *daemon, FILE *out);

#endif
