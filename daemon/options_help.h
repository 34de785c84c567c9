/* What sentry-profd --help prints. */
#ifndef DAEMON_OPTIONS_HELP_H
#define DAEMON_OPTIONS_HELP_H

extern const char options_help[];

#endif
