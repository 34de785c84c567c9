#include "daemon/broker/state/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/common/log.h"
#include "daemon/common/option_fault.h"
#include "daemon/common/version.h"
#include "daemon/config/config_fault.h"
#include "daemon/config/config_files.h"
#include "daemon/config/config_keys.h"
#include "daemon/config/config_print.h"
#include "daemon/config/config_read.h"
#include "daemon/config/config_resolve.h"
#include "daemon/config/config_value.h"
#include "lib/base/digits.h"
#include "lib/base/utf8.h"
#include "proto/profile_v1.h"

/* Bytes. Sentry accepts 200 characters, as for other texts. */
#define TRANSACTION_MAX 200

/* Adds an error of an option, with its value unless that is NULL or may be a secret. */
static void usage_fault(struct config_faults *faults, const char *option, const char *problem,
			const char *value)
{
	const struct config_origin at = {.given_by = option};

	if (value == NULL || config_value_may_be_secret(NULL, value))
		config_fault_add(faults, NULL, &at, false, "%s (--help shows the usage)", problem);
	else
		config_fault_add(faults, NULL, &at, false, "%s: '%s' (--help shows the usage)",
				 problem, value);
}

/*
 * Returns the format of a file of this name. NULL: the name is a directory's, because it has no
 * suffix of a format or because a directory of that name exists.
 */
static const struct output_format *format_of(const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return NULL;
	return output_format_of_path(path);
}

/* Adds an error for an argument without an option, which is often a pid. */
static void argument_fault(struct config_faults *faults, const char *argument)
{
	const struct config_origin at = {.given_by = "argument"};
	int32_t pid;

	if (digits_pid(argument, &pid))
		config_fault_add(faults, NULL, &at, false,
				 "not expected: did you mean --pid %d? (--help "
				 "shows the usage)",
				 pid);
	else
		usage_fault(faults, "argument", "not expected", argument);
}

static void set_duration(struct config_faults *faults, struct options *o, const char *value)
{
	static const struct config_key key = {
		.type = KEY_SECONDS,
		.offset = offsetof(struct options, duration_s),
		/* One year. */
		.max = 365 * 24 * 3600,
	};
	char problem[CONFIG_PROBLEM_MAX];

	if (config_value_parse(&key, value, o, problem) < 0)
		usage_fault(faults, "--duration", problem, value);
}

static void add_pid(struct config_faults *faults, struct options *o, const char *text)
{
	const char *problem = NULL;
	int32_t pid;

	if (!digits_pid(text, &pid))
		problem = "not a number from 1 to 2147483647";
	else if (o->n_pids == array_size(o->pids))
		problem = "too many processes";
	for (size_t i = 0; problem == NULL && i < o->n_pids; i++)
		if (o->pids[i] == pid)
			problem = "given twice";
	if (problem != NULL)
		usage_fault(faults, "--pid", problem, text);
	else
		o->pids[o->n_pids++] = pid;
}

/* Adds a section with one rule. */
static void add_rule(struct config_faults *faults, struct options *o,
		     const struct option_known *option, const char *value)
{
	const struct config_key *key = config_key_find(SECTION_TARGET, option->key);
	char problem[CONFIG_PROBLEM_MAX] = "too many rules";
	struct section_config *rule;
	int r = -ENOSPC;

	if (o->rules == NULL)
		o->rules = calloc(OPTIONS_RULES_MAX, sizeof(*o->rules));
	if (o->rules == NULL) {
		log_error("no memory for the rules of the command line: sentry-profd ends");
		exit(EXIT_FAILURE);
	}
	rule = o->rules + o->n_rules;
	if (o->n_rules < OPTIONS_RULES_MAX) {
		rule->uid = CONFIG_UID_ANY;
		r = config_value_parse(key, value, rule, problem);
	}
	if (r < 0)
		usage_fault(faults, option->name, problem, value);
	else
		o->n_rules++;
}

/* Returns true if the options name processes, by pid or by a rule. */
static bool names_targets(const struct options *o)
{
	return o->n_pids > 0 || o->n_rules > 0;
}

/* The text of a DSN's error does not contain the DSN. */
static void take_key(struct config_faults *faults, struct config *c,
		     const struct option_known *option, const char *value)
{
	const struct config_origin at = {.given_by = option->name};
	char problem[CONFIG_PROBLEM_MAX];

	if (config_set(c, option->key, at.given_by, value, problem) == 0)
		return;
	if (strcmp(option->key, "dsn") == 0)
		config_fault_add(faults, NULL, &at, false, "%s", problem);
	else
		usage_fault(faults, at.given_by, problem, value);
}

static void take_option(struct config_faults *faults, struct options *o,
			const struct option_known *option, const char *value)
{
	void *field = (char *)o + option->offset;

	switch (option->kind) {
	case OPTION_KEY:
		take_key(faults, &o->config, option, value);
		break;
	case OPTION_RULE:
		add_rule(faults, o, option, value);
		break;
	case OPTION_TEXT:
		*(const char **)field = value;
		break;
	case OPTION_FLAG:
		*(bool *)field = true;
		break;
	case OPTION_PID:
		add_pid(faults, o, value);
		break;
	case OPTION_DURATION:
		set_duration(faults, o, value);
		break;
	case OPTION_VERSION:
		printf("sentry-profd %s\n", version_text);
		exit(EXIT_SUCCESS);
	case OPTION_HELP:
	case OPTION_HELP_ALL:
		options_help(option->kind == OPTION_HELP_ALL);
		exit(EXIT_SUCCESS);
	}
}

/* The keys of DSNs must not get into a core file. */
static void forbid_core_dump(const struct config *c)
{
	bool any = c->has_dsn;

	for (size_t i = 0; i < c->n_sections; i++)
		any |= c->sections[i].dsn[0] != '\0';
	if (any)
		(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/*
 * Reads the configuration and adds all errors to faults. Returns 0; -EAGAIN if the only errors
 * are about files that the configuration names, which may be there at another start; else
 * -EINVAL.
 */
static int load(const struct options *o, enum config_occasion occasion, struct config *ret,
		struct config_faults *faults)
{
	struct config c;
	size_t n_wrong;
	int r = 0;

	faults->is_check = occasion == CONFIG_AT_CHECK;
	if (o->config_path == NULL)
		config_init(&c);
	else
		(void)!config_load(o->config_path, &c, faults);
	options_override(o->given, &c);
	if (occasion == CONFIG_AT_RELOAD)
		config_keep_sections(&c, &o->config);
	(void)!config_resolve(&c, getenv, faults);
	n_wrong = faults->n_errors;
	config_files_check(&c, occasion, faults);
	forbid_core_dump(&c);
	if (faults->n_errors > 0)
		r = n_wrong > 0 ? -EINVAL : -EAGAIN;
	if (r < 0)
		config_fini(&c);
	else
		*ret = c;
	return r;
}

int options_read_as_start(const struct options *o, struct config *ret, struct config_faults *faults)
{
	return load(o, CONFIG_AT_START, ret, faults);
}

void options_config_path(const struct options *o, char ret[OPTIONS_PATH_SIZE])
{
	const char *path = o->config_path == NULL ? "" : o->config_path;
	size_t n = 0;

	if (path[0] != '\0' && path[0] != '/' && getcwd(ret, PATH_MAX) != NULL) {
		n = strlen(ret);
		ret[n++] = '/';
	}
	(void)snprintf(ret + n, OPTIONS_PATH_SIZE - n, "%s", path);
}

int options_reload(const struct options *o, struct config *ret, struct config_faults *faults)
{
	if (o->config_path == NULL)
		return -ENOENT;
	return load(o, CONFIG_AT_RELOAD, ret, faults);
}

/* For ship: libcurl reads these variables, the lower-case ones first. */
static void set_proxies(const struct config *c)
{
	const struct {
		const char *variable, *value;
	} v[] = {
		{"http_proxy", c->http_proxy},
		{"https_proxy", c->https_proxy},
		{"no_proxy", c->no_proxy},
	};

	for (size_t i = 0; i < array_size(v); i++)
		if (v[i].value[0] != '\0' && setenv(v[i].variable, v[i].value, 1) < 0)
			log_error("no memory to set the variable %s: sentry-profd-ship does "
				  "not use this setting of a proxy",
				  v[i].variable);
}

void options_replace(struct options *o, struct config *config)
{
	config_fini(&o->config);
	o->config = *config;
	explicit_bzero(config, sizeof(*config));
	set_proxies(&o->config);
}

static void print_check(struct config_faults *faults, int r, const struct options *o)
{
	config_faults_log(faults);
	if (r < 0)
		exit(2);
	exit(config_print(&o->config, STDOUT_FILENO) < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

static bool is_plain_utf8(const char *text)
{
	while (*text != '\0') {
		const size_t n = utf8_length(text);

		if (n == 0 || (unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
		text += n;
	}
	return true;
}

static void check_command(struct config_faults *faults, const struct options *o)
{
	if (o->command != NULL && o->command[0] == NULL)
		usage_fault(faults, "--", "needs a command", NULL);
	if (o->children && !names_targets(o))
		usage_fault(faults, "--children", "needs --pid, --name or a command", NULL);
	if (o->check_servers && !o->check_only)
		usage_fault(faults, "--servers", "needs --check-config", NULL);
	if (o->user != NULL && o->command == NULL)
		usage_fault(faults, "--user", "needs a command after --", NULL);
}

/* The longest ending that is taken for that of a file, without its dot. */
#define ENDING_MAX 12

/*
 * Returns true if a new directory of this name was probably meant to be a file: its name ends as
 * the name of a file does, with a dot and a word. Numbers, as in "run-1.2", are no word.
 */
static bool looks_like_file(const char *path)
{
	const char *base = strrchr(path, '/'), *dot;
	struct stat st;

	base = base != NULL ? base + 1 : path;
	dot = strrchr(base, '.');
	return dot != NULL && dot > base && strlen(dot + 1) <= ENDING_MAX &&
	       strpbrk(dot + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != NULL &&
	       stat(path, &st) < 0;
}

static void refuse_ending(struct config_faults *faults, const char *path)
{
	char problem[CONFIG_PROBLEM_MAX];
	size_t n = (size_t)snprintf(problem, sizeof(problem),
				    "no format has this ending; a directory's name would end with "
				    "'/'. Formats:");

	for (size_t i = 0; i < OUTPUT_FORMATS_N && n < sizeof(problem); i++)
		n += (size_t)snprintf(problem + n, sizeof(problem) - n, " %s",
				      output_formats[i].suffix);
	usage_fault(faults, "--output", problem, path);
}

/* A file holds the profile of a whole run. */
static void check_output(struct config_faults *faults, struct options *o)
{
	if (o->output != NULL)
		o->output_format = format_of(o->output);
	if (o->output != NULL && o->output_format == NULL && looks_like_file(o->output))
		refuse_ending(faults, o->output);
	if (o->output_format == NULL)
		return;
	if (!names_targets(o))
		usage_fault(faults, "--output",
			    "a file takes --pid, --name or a command; without "
			    "them it has to be a directory",
			    o->output);
	if (o->transaction != NULL)
		usage_fault(faults, "--output", "with --transaction it has to be a directory",
			    o->output);
}

/* A V1 profile belongs to one transaction, and the server limits its length. */
static void check_transaction(struct config_faults *faults, const struct options *o)
{
	const char *name = o->transaction, *option = "--transaction";

	if (name == NULL)
		return;
	if (o->n_pids != 1 || o->n_rules > 0 || o->children)
		usage_fault(faults, option, "needs one --pid, or a command", name);
	if (o->duration_s <= 0 || o->duration_s > PROFILE_V1_MAX_S)
		usage_fault(faults, option, "needs a --duration of 30 seconds at most", name);
	if (name[0] == '\0' || strlen(name) > TRANSACTION_MAX)
		usage_fault(faults, option, "empty, or longer than 200 bytes", name);
	else if (!is_plain_utf8(name))
		usage_fault(faults, option, "not UTF-8, or with control characters", name);
}

static void check_names(struct config_faults *faults, struct options *o)
{
	o->full_names = o->names != NULL && strcmp(o->names, "full") == 0;
	if (o->names != NULL && !o->full_names && strcmp(o->names, "short") != 0)
		usage_fault(faults, "--names", "not short or full", o->names);
}

/* Exits if there is neither a process nor a configuration file. */
static void require_something(struct config_faults *faults, struct options *o)
{
	if (access(o->config_path, F_OK) == 0)
		return;
	if (!names_targets(o) && !o->check_servers && faults->n_errors == 0) {
		log_error(
			"nothing to profile: no --pid and no command is given, and there is no %s "
			"(--help shows the usage)",
			o->config_path);
		exit(2);
	}
	/* The errors of the options are enough; with --servers a missing file is no error. */
	if (faults->n_errors > 0 || o->check_servers)
		o->config_path = NULL;
}

void options_read(int argc, char **argv, struct options *ret, struct config_faults *faults)
{
	struct options *o = ret;
	struct option_fault fault;
	const char *value;
	int i;

	*o = (struct options){.program = argv[0]};
	config_init(&o->config);
	while ((i = options_next(argc, argv, &value, &fault)) > OPTIONS_END) {
		if (i == OPTIONS_WRONG) {
			usage_fault(faults, fault.option, fault.problem, NULL);
		} else if (i == OPTIONS_ARGUMENT) {
			argument_fault(faults, value);
		} else {
			o->given[i] = value;
			take_option(faults, o, &options_known[i], value);
		}
	}
	if (i == OPTIONS_COMMAND)
		o->command = argv + optind;
}

/* Inserts the command's process as the first of pids. */
static void add_command(struct config_faults *faults, struct options *o, int32_t pid)
{
	if (o->n_pids == array_size(o->pids)) {
		usage_fault(faults, "--", "too many processes", NULL);
		return;
	}
	memmove(o->pids + 1, o->pids, o->n_pids * sizeof(*o->pids));
	o->pids[0] = pid;
	o->n_pids++;
}

static bool is_given(const struct options *o, const char *key)
{
	for (size_t i = 0; i < options_n_known; i++)
		if (options_known[i].kind == OPTION_KEY && strcmp(options_known[i].key, key) == 0)
			return o->given[i] != NULL;
	return false;
}

/* Without a configuration, that is in a run by hand, everything is looked up for the user. */
static void choose_symbols(struct options *o)
{
	o->lines_for_files = o->config_path == NULL && !is_given(o, "symbols");
	if (o->lines_for_files)
		o->config.symbols = UNWIND_SYMBOLS_LINES;
}

/* Spotlight gets the payload that is for files. */
static void choose_command_line(struct options *o)
{
	o->with_command_line = o->config_path == NULL &&
			       o->output_format == &output_formats[OUTPUT_FORMAT_HTML] &&
			       o->config.spotlight[0] == '\0';
}

void options_load(struct options *o, int32_t command_pid, struct config_faults *faults)
{
	const enum config_occasion occasion = o->check_only ? CONFIG_AT_CHECK : CONFIG_AT_START;
	struct config config;
	int r;

	if (command_pid != 0)
		add_command(faults, o, command_pid);
	check_command(faults, o);
	check_transaction(faults, o);
	check_output(faults, o);
	check_names(faults, o);
	if (o->config_path == NULL && (!names_targets(o) || o->check_only)) {
		o->config_path = CONFIG_PATH_DEFAULT;
		require_something(faults, o);
	}
	r = load(o, occasion, &config, faults);
	if (r == 0) {
		options_replace(o, &config);
		choose_symbols(o);
		choose_command_line(o);
	}
	if (o->check_servers)
		return;
	if (o->check_only)
		print_check(faults, r, o);
	config_faults_log(faults);
	if (r < 0)
		exit(r == -EAGAIN ? EXIT_FAILURE : 2);
}

uint32_t options_timer_hz(const struct options *o)
{
	uint32_t highest = o->config.rate_hz;

	for (size_t k = 0; k < o->config.n_sections; k++)
		if (o->config.sections[k].rate_hz > highest)
			highest = o->config.sections[k].rate_hz;
	return highest;
}
