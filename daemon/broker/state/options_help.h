/* What sentry-profd --help and --help-all print. */
#ifndef DAEMON_BROKER_STATE_OPTIONS_HELP_H
#define DAEMON_BROKER_STATE_OPTIONS_HELP_H

#include <stdbool.h>

/*
 * all: every option; else what a first user needs, and examples, in 24 lines of
 * 80 columns. Completion takes its words from lines that begin with two blanks
 * and an option.
 */
void options_help(bool all);

#endif
