/*
 * The options that sentry-profd knows, as one table: for its command line, for
 * --help, and for a reader of the command line of one that runs. Many of them
 * are keys of the configuration.
 */
#ifndef DAEMON_BROKER_STATE_OPTIONS_KEYS_H
#define DAEMON_BROKER_STATE_OPTIONS_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/common/option_fault.h"
#include "daemon/config/config.h"
#include "lib/base/util.h"

#define OPTIONS_MAX 64

enum option_kind {
	OPTION_KEY,  /* a key of the configuration, by name */
	OPTION_RULE, /* the same, a rule of a section of its own */
	OPTION_TEXT, /* a const char * in struct options, as it is given */
	OPTION_FLAG, /* a bool there */
	OPTION_PID,
	OPTION_DURATION,
	OPTION_VERSION,
	OPTION_HELP,
	OPTION_HELP_ALL,
};

struct option_known {
	char letter;	  /* 'p' of "-p"; 0: none */
	const char *name; /* "--pid" */
	/* As --help shows it; NULL: takes none. "[=URL]" may be left out. */
	const char *argument;
	enum option_kind kind;
	const char *key; /* OPTION_KEY, OPTION_RULE */
	size_t offset;	 /* OPTION_TEXT, OPTION_FLAG */
	bool is_common;	 /* --help has it, too, and not --help-all alone */
	const char *help;
};
extern const struct option_known options_known[];
extern const size_t options_n_known;

/*
 * The next option's place in options_known. *ret_value: its value, or "yes".
 * Less than 0: OPTIONS_WRONG, and why; OPTIONS_ARGUMENT: *ret_value is no
 * option; OPTIONS_END: there are no more; OPTIONS_COMMAND: none either, and
 * what follows "--" begins at argv[optind] (getopt(3)). An optind of 0 begins
 * anew.
 */
enum {
	OPTIONS_WRONG = -1,
	OPTIONS_ARGUMENT = -2,
	OPTIONS_END = -3,
	OPTIONS_COMMAND = -4,
};
int options_next(int argc, char **argv, const char **ret_value, struct option_fault *ret_fault);

/*
 * Lays values of a command line over what c has: given has one for each of
 * options_known, or NULL; those that are no keys are passed over. A wrong value
 * is left out: the user is told of it when the command line is read.
 */
void options_lay_over(const char *const given[OPTIONS_MAX], struct config *c);

#endif
