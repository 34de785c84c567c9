/*
 * The format "summary": the table of the hottest functions that sentry-profd
 * prints after a run, by the same code (lib/aggregate/functions.h).
 */
#ifndef DAEMON_CTL_SUMMARY_H
#define DAEMON_CTL_SUMMARY_H

#include "proto/export/export.h"

/* As sentry-profd's (daemon/broker/finish.c). */
#define SUMMARY_ROWS 20

/* See proto/export/export.h. The merge is by function and not ordered. */
must_check int summary_write(const struct merge *m, const struct export_options *o, FILE *out);

#endif
