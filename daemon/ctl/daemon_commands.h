/*
 * The commands of sentry-profctl that the running daemon carries out: status, start, stop,
 * attach, detach, profiler-id, reload and metrics. Each sends one request over the control
 * socket (daemon/common/control_client.h) and prints the answer.
 */
#ifndef DAEMON_CTL_DAEMON_COMMANDS_H
#define DAEMON_CTL_DAEMON_COMMANDS_H

#include <stddef.h>

/* Returns the name of the command at an index, or NULL at the end of the list. */
const char *daemon_commands_name(size_t index);

/*
 * Runs the command that argv[0] names. Returns the exit status: EXIT_SUCCESS if the daemon has
 * carried out the request or had nothing to change (it profiles the process already, for
 * example); EXIT_FAILURE after a line on stderr; or 2 for wrong usage.
 */
int daemon_commands_run(int argc, char **argv);

/* The part of --help-all about these commands. */
extern const char daemon_commands_help[];

#endif
