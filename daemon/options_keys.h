/*
 * The options that sentry-profd knows, and which of them are keys of its
 * configuration: for itself, and for who reads the command line of one that
 * runs.
 */
#ifndef DAEMON_OPTIONS_KEYS_H
#define DAEMON_OPTIONS_KEYS_H

#include <stdbool.h>

#include "daemon/config.h"
#include "daemon/option_fault.h"
#include "lib/base/util.h"

enum option_id {
	OPTION_PID = 256,
	OPTION_USER,
	OPTION_CHILDREN,
	OPTION_RULE, /* key is that of a section */
	OPTION_DURATION,
	OPTION_TRANSACTION,
	OPTION_OUTPUT,
	OPTION_STATS,
	OPTION_CONFIG,
	OPTION_CHECK_CONFIG,
	OPTION_QUIET,
	OPTION_VERSION,
	OPTION_HELP,
	OPTION_HELP_ALL,
	OPTION_KEY,	   /* of the configuration */
	OPTION_KEY_OR_YES, /* the same; its value may be left out */
};

struct option_known {
	const char *name; /* "--rate" */
	enum option_id id;
	bool has_value;
	const char
		*key; /* OPTION_KEY*: it is this one's, without a value yes */
};
extern const struct option_known options_known[];
extern const size_t options_n_known;

/*
 * The next option's place in options_known, its value in optarg (getopt(3));
 * OPTIONS_END, then argv from optind on is left; or OPTIONS_WRONG, and why.
 * -p, -d, -o and -h are --pid, --duration, --output and --help. An optind of 0
 * begins anew.
 */
#define OPTIONS_END   (-1)
#define OPTIONS_WRONG (-2)
int options_next(int argc, char **argv, struct option_fault *ret_fault);

/*
 * Where "--" stands among the arguments, before any option is read: what
 * follows is a command. argc: there is none. *ret_user: the value of --user, or
 * NULL. options_next begins anew after it.
 */
int options_command(int argc, char **argv, const char **ret_user);

/*
 * All that are keys, over what c has. A wrong one is left out: who gives a
 * command line is told of that once, when it is read first.
 */
void options_lay_over(int argc, char **argv, struct config *c);

#endif
