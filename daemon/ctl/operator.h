/*
 * sentry-profctl's commands that the running daemon obeys: status, start, stop,
 * attach, detach, profiler-id, reload and metrics.
 */
#ifndef DAEMON_CTL_OPERATOR_H
#define DAEMON_CTL_OPERATOR_H

#include <stddef.h>

/* The name of the one at this place, from 0 on; NULL: there are no more. */
const char *operator_command(size_t at);

/*
 * Runs it with its arguments, argv[0] is its name. Returns the exit status:
 * EXIT_SUCCESS if what was asked for holds now, EXIT_FAILURE with a line on
 * stderr, or 2 for wrong usage.
 */
int operator_run(int argc, char **argv);

/* The lines of --help-all that are about them. */
extern const char operator_help[];

#endif
