#include "daemon/options_keys.h"

#include <getopt.h>
#include <string.h>

#include "daemon/config_keys.h"

const struct option_known options_known[] = {
	{"--pid", OPTION_PID, true, NULL},
	{"--name", OPTION_RULE, true, "comm"},
	{"--unit", OPTION_RULE, true, "unit"},
	{"--container", OPTION_RULE, true, "container"},
	{"--children", OPTION_CHILDREN, false, NULL},
	{"--user", OPTION_USER, true, NULL},
	{"--duration", OPTION_DURATION, true, NULL},
	{"--transaction", OPTION_TRANSACTION, true, NULL},
	{"--output", OPTION_OUTPUT, true, NULL},
	{"--stats", OPTION_STATS, true, NULL},
	{"--config", OPTION_CONFIG, true, NULL},
	{"--check-config", OPTION_CHECK_CONFIG, false, NULL},
	{"--quiet", OPTION_QUIET, false, NULL},
	{"--version", OPTION_VERSION, false, NULL},
	{"--help", OPTION_HELP, false, NULL},
	{"--help-all", OPTION_HELP_ALL, false, NULL},
	{"--dsn", OPTION_KEY, true, "dsn"},
	{"--spotlight", OPTION_KEY_OR_YES, false, "spotlight"},
	{"--socket", OPTION_KEY, true, "socket"},
	{"--spool", OPTION_KEY, true, "spool"},
	{"--shutdown-timeout", OPTION_KEY, true, "shutdown_timeout"},
	{"--retry-5xx", OPTION_KEY, false, "retry_5xx"},
	{"--compression", OPTION_KEY, true, "compression"},
	{"--ca-certs", OPTION_KEY, true, "ca_certs"},
	{"--client-cert", OPTION_KEY, true, "client_cert"},
	{"--client-key", OPTION_KEY, true, "client_key"},
	{"--rate", OPTION_KEY, true, "rate_hz"},
	{"--chunk-seconds", OPTION_KEY, true, "chunk_seconds"},
	{"--mode", OPTION_KEY, true, "mode"},
	{"--in-app-include", OPTION_KEY, true, "in_app_include"},
	{"--in-app-exclude", OPTION_KEY, true, "in_app_exclude"},
	{"--max-frames", OPTION_KEY, true, "max_frames"},
	{"--cpu-budget", OPTION_KEY, true, "cpu_budget_percent"},
	{"--release", OPTION_KEY, true, "release"},
	{"--environment", OPTION_KEY, true, "environment"},
	{"--platform", OPTION_KEY, true, "platform"},
	{"--symbols", OPTION_KEY, true, "symbols"},
	{"--addresses", OPTION_KEY, true, "addresses"},
	{"--debug", OPTION_KEY, false, "debug"},
};
const size_t options_n_known = array_size(options_known);

/* The options that are given most by hand. */
static const struct {
	char letter;
	const char *name;
} letters[] = {
	{'p', "--pid"},
	{'d', "--duration"},
	{'o', "--output"},
	{'h', "--help"},
};
#define LETTERS ":p:d:o:h"
/* Ends at the first argument that is no option, and exchanges none. */
#define LETTERS_IN_ORDER "+" LETTERS

static int place_of(const char *name)
{
	int i = 0;

	while (strcmp(options_known[i].name, name) != 0)
		i++;
	return i;
}

static int has_arg(const struct option_known *known)
{
	if (known->id == OPTION_KEY_OR_YES)
		return optional_argument;
	return known->has_value ? required_argument : no_argument;
}

static int next(int argc, char **argv, const char *with_letters,
		struct option_fault *ret_fault)
{
	static struct option v[array_size(options_known) + 1];
	int option, i = -1;

	for (size_t at = 0; at < array_size(options_known); at++)
		v[at] = (struct option){.name = options_known[at].name +
						strlen("--"),
					.has_arg = has_arg(&options_known[at]),
					.val = OPTION_LONG};
	/* getopt writes its own line, which begins with argv[0]. */
	opterr = 0;
	option = getopt_long(argc, argv, with_letters, v, &i);
	if (option == -1)
		return OPTIONS_END;
	for (size_t l = 0; l < array_size(letters); l++)
		if (option == letters[l].letter)
			return place_of(letters[l].name);
	if (option == OPTION_LONG)
		return i;
	option_fault(option, argv, v, ret_fault);
	return OPTIONS_WRONG;
}

int options_next(int argc, char **argv, struct option_fault *ret_fault)
{
	return next(argc, argv, LETTERS, ret_fault);
}

int options_command(int argc, char **argv, const char **ret_user)
{
	struct option_fault fault;
	int found = argc, at = 1, i;

	*ret_user = NULL;
	optind = 0; /* from the beginning, getopt(3) */
	while (at < argc && found == argc) {
		i = next(argc, argv, LETTERS_IN_ORDER, &fault);
		if (i >= 0 && options_known[i].id == OPTION_USER)
			*ret_user = optarg;
		/* It passes over "--" alone. */
		if (i == OPTIONS_END && optind > at)
			found = at;
		else if (i == OPTIONS_END)
			optind++;
		at = optind;
	}
	optind = 0;
	return found;
}

void options_lay_over(int argc, char **argv, struct config *c)
{
	struct option_fault fault;
	char problem[CONFIG_PROBLEM_MAX];
	int i;

	optind = 0; /* from the beginning, getopt(3) */
	while ((i = options_next(argc, argv, &fault)) != OPTIONS_END) {
		if (i == OPTIONS_WRONG ||
		    (options_known[i].id != OPTION_KEY &&
		     options_known[i].id != OPTION_KEY_OR_YES))
			continue;
		(void)!config_set(c, options_known[i].key,
				  options_known[i].name,
				  optarg != NULL ? optarg : "yes", problem);
	}
}
