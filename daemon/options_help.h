/* What sentry-profd --help and --help-all print. */
#ifndef DAEMON_OPTIONS_HELP_H
#define DAEMON_OPTIONS_HELP_H

/* What a first user needs, and examples: 24 lines of 80 columns. */
extern const char options_help[];

/*
 * Every option. Completion takes its words from lines that begin with two
 * blanks and an option.
 */
extern const char options_help_all[];

#endif
