/* The texts of sentry-profd --help and --help-all. */
#ifndef DAEMON_BROKER_STATE_OPTIONS_HELP_H
#define DAEMON_BROKER_STATE_OPTIONS_HELP_H

#include <stdbool.h>

/*
 * Prints all options, or else, in 24 lines of 80 columns, examples and the options that a new
 * user needs. The shell completion reads the lines that begin with two blanks and an option.
 */
void options_help(bool all);

#endif
