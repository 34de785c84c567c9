/*
 * sentry-profctl status: the daemon's JSON as a table for people. The JSON is
 * the daemon's, who may be of another version: what is missing is shown as "-",
 * what is not known here is not shown. Texts are shown whole.
 */
#ifndef DAEMON_CTL_STATUS_TABLE_H
#define DAEMON_CTL_STATUS_TABLE_H

#include <stddef.h>
#include <stdio.h>

#include "lib/base/util.h"

/*
 * width: of the terminal, 0: it is none. An error for which a row has no room
 * there stands below it. Returns 0, -EPROTO if the text is no such JSON,
 * -ENOMEM.
 */
must_check int status_table_print(const char *json, size_t size, size_t width, FILE *out);

#endif
