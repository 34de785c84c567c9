/*
 * The table of sentry-profd's options, for its command line and for --help. Many options set a key
 * of the configuration.
 */
#ifndef DAEMON_BROKER_STATE_OPTIONS_KEYS_H
#define DAEMON_BROKER_STATE_OPTIONS_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/common/option_fault.h"
#include "daemon/config/config.h"
#include "lib/base/util.h"

/* The most options that options_known may have. */
#define OPTIONS_MAX 64

enum option_kind {
	OPTION_KEY,  /* sets a key of the configuration: --dsn, for example */
	OPTION_RULE, /* adds a rule to options.rules: --name, for example */
	OPTION_TEXT, /* sets a const char * in struct options */
	OPTION_FLAG, /* sets a bool in struct options to true */
	/* Each of the kinds below belongs to one option only. */
	OPTION_PID, /* --pid */
	OPTION_DURATION,
	OPTION_VERSION,
	OPTION_HELP,
	OPTION_HELP_ALL,
};

struct option_known {
	char letter;	  /* the letter of "-p"; 0: none */
	const char *name; /* "--pid" */
	/* The argument as --help shows it, in brackets if it is optional ("[=URL]"); NULL: none. */
	const char *argument;
	enum option_kind kind;
	const char *key;  /* for OPTION_KEY and OPTION_RULE: the name of the key */
	size_t offset;	  /* in struct options, for OPTION_TEXT and OPTION_FLAG */
	bool is_common;	  /* also in --help, not only in --help-all */
	const char *help; /* the description in --help */
};
extern const struct option_known options_known[];
extern const size_t options_n_known;

/*
 * Parses the next option. Before another argv is parsed, set optind (getopt(3)) to 0. Returns
 * - an index of options_known: *ret_value is the value given with this option, else "yes";
 * - OPTIONS_WRONG: the option is wrong, for the reason in *ret_fault;
 * - OPTIONS_ARGUMENT: *ret_value is an argument that is no option;
 * - OPTIONS_END: there are no more options;
 * - OPTIONS_COMMAND: there are no more options, and the command after "--" begins at argv[optind].
 */
enum {
	OPTIONS_WRONG = -1,
	OPTIONS_ARGUMENT = -2,
	OPTIONS_END = -3,
	OPTIONS_COMMAND = -4,
};
int options_next(int argc, char **argv, const char **ret_value, struct option_fault *ret_fault);

/*
 * Sets keys of c to the values of a command line. given: for each index of options_known the value
 * of this option; NULL: it is not given. The function sets the keys of OPTION_KEY options only. It
 * skips a wrong value without a message, because options_read() reports wrong values.
 */
void options_override(const char *const given[OPTIONS_MAX], struct config *c);

/*
 * Prints on stdout the text of --help-all, which has all options, if all is true. Otherwise prints
 * that of --help, in 24 lines of 80 columns: examples and the options that a new user needs. The
 * shell completion reads the lines that begin with two blanks and an option.
 */
void options_help(bool all);

#endif
