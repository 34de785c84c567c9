#include "daemon/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "daemon/config_keys.h"
#include "daemon/log.h"
#include "daemon/options_help.h"
#include "daemon/process.h"
#include "proto/profile.h"
#include "proto/profile_v1.h"

/* As other texts: Sentry takes 200 characters. */
#define TRANSACTION_MAX 200

enum option_id {
	OPTION_PID = 256,
	OPTION_DURATION,
	OPTION_TRANSACTION,
	OPTION_OUTPUT,
	OPTION_STATS,
	OPTION_CONFIG,
	OPTION_CHECK_CONFIG,
	OPTION_QUIET,
	OPTION_VERSION,
	OPTION_HELP,
	OPTION_KEY, /* of the configuration */
};

static const struct {
	const char *name;
	enum option_id id;
	bool has_value;
	const char *key; /* OPTION_KEY: it is this one's, without a value yes */
} known[] = {
	{"pid", OPTION_PID, true, NULL},
	{"duration", OPTION_DURATION, true, NULL},
	{"transaction", OPTION_TRANSACTION, true, NULL},
	{"output", OPTION_OUTPUT, true, NULL},
	{"stats", OPTION_STATS, true, NULL},
	{"config", OPTION_CONFIG, true, NULL},
	{"check-config", OPTION_CHECK_CONFIG, false, NULL},
	{"quiet", OPTION_QUIET, false, NULL},
	{"version", OPTION_VERSION, false, NULL},
	{"help", OPTION_HELP, false, NULL},
	{"dsn", OPTION_KEY, true, "dsn"},
	{"socket", OPTION_KEY, true, "socket"},
	{"spool", OPTION_KEY, true, "spool"},
	{"shutdown-timeout", OPTION_KEY, true, "shutdown_timeout"},
	{"retry-5xx", OPTION_KEY, false, "retry_5xx"},
	{"compression", OPTION_KEY, true, "compression"},
	{"ca-certs", OPTION_KEY, true, "ca_certs"},
	{"client-cert", OPTION_KEY, true, "client_cert"},
	{"client-key", OPTION_KEY, true, "client_key"},
	{"rate", OPTION_KEY, true, "rate_hz"},
	{"chunk-seconds", OPTION_KEY, true, "chunk_seconds"},
	{"mode", OPTION_KEY, true, "mode"},
	{"in-app-include", OPTION_KEY, true, "in_app_include"},
	{"in-app-exclude", OPTION_KEY, true, "in_app_exclude"},
	{"max-frames", OPTION_KEY, true, "max_frames"},
	{"cpu-budget", OPTION_KEY, true, "cpu_budget_percent"},
	{"release", OPTION_KEY, true, "release"},
	{"environment", OPTION_KEY, true, "environment"},
	{"platform", OPTION_KEY, true, "platform"},
	{"symbols", OPTION_KEY, true, "symbols"},
	{"debug", OPTION_KEY, false, "debug"},
};

__attribute__((noreturn)) static void
usage_error(const char *option, const char *problem, const char *value)
{
	log_error("%s: %s: '%s' (--help shows the usage)", option, problem,
		  value);
	exit(2);
}

static double parse_seconds(const char *option, const char *text)
{
	/* A year; a duration is no daemon's life. */
	const double max = 365.0 * 24 * 3600;
	char *end;
	double n;

	errno = 0;
	n = strtod(text, &end);
	/* strtod takes 0x10, 1e3 and inf as well. */
	if (text[strspn(text, "0123456789.")] != '\0' || text[0] == '\0' ||
	    *end != '\0' || errno != 0 || !isfinite(n) || n <= 0 || n > max)
		usage_error(option, "not a positive number of seconds", text);
	return n;
}

static void add_pid(struct options *o, const char *text)
{
	int32_t pid;

	if (!process_parse_pid(text, &pid))
		usage_error("--pid", "not a number from 1 to 2147483647", text);
	if (o->n_pids == array_size(o->pids))
		usage_error("--pid", "too many processes", text);
	for (size_t i = 0; i < o->n_pids; i++)
		if (o->pids[i] == pid)
			usage_error("--pid", "given twice", text);
	o->pids[o->n_pids++] = pid;
}

/* What is wrong with a DSN is said in words that do not contain it. */
static void take_key(struct config *c, size_t i, const char *value)
{
	char problem[CONFIG_PROBLEM_MAX], option[32];

	if (config_set(c, known[i].key, value != NULL ? value : "yes",
		       problem) == 0)
		return;
	if (strcmp(known[i].key, "dsn") == 0) {
		log_error("%s", problem);
		exit(2);
	}
	(void)snprintf(option, sizeof(option), "--%s", known[i].name);
	usage_error(option, problem, value);
}

/* The next option's place in known, -1 at the end. */
static int next_option(int argc, char **argv)
{
	static struct option v[array_size(known) + 1];
	int option, i = -1;

	for (size_t at = 0; at < array_size(known); at++)
		v[at] = (struct option){.name = known[at].name,
					.has_arg = known[at].has_value
							   ? required_argument
							   : no_argument,
					.val = (int)known[at].id};
	option = getopt_long(argc, argv, ":", v, &i);
	if (option == ':')
		usage_error(argv[optind - 1], "needs a value", "");
	if (option == '?')
		usage_error("option", "not known", argv[optind - 1]);
	return option == -1 ? -1 : i;
}

static void take_option(struct options *o, size_t i, const char *value,
			bool *is_check)
{
	switch (known[i].id) {
	case OPTION_PID:
		add_pid(o, value);
		break;
	case OPTION_DURATION:
		o->duration_s = parse_seconds("--duration", value);
		break;
	case OPTION_TRANSACTION:
		o->transaction = value;
		break;
	case OPTION_OUTPUT:
		o->output = value;
		break;
	case OPTION_STATS:
		o->stats = value;
		break;
	case OPTION_CONFIG:
		o->config_path = value;
		break;
	case OPTION_CHECK_CONFIG:
		*is_check = true;
		break;
	case OPTION_QUIET:
		o->quiet = true;
		break;
	case OPTION_VERSION:
		printf("sentry-profd %s\n", SENTRY_PROFD_VERSION);
		exit(EXIT_SUCCESS);
	case OPTION_HELP:
		(void)fputs(options_help, stdout);
		exit(EXIT_SUCCESS);
	case OPTION_KEY:
		take_key(&o->config, i, value);
		break;
	}
}

/* Over what the files say; each has been taken before, and is good. */
static void lay_over(const struct options *o, struct config *c)
{
	int i;

	optind = 0; /* from the beginning, getopt(3) */
	while ((i = next_option(o->argc, o->argv)) >= 0)
		if (known[i].id == OPTION_KEY)
			take_key(c, (size_t)i, optarg);
}

/* Its keys shall be in no core file. */
static void hide(const struct config *c)
{
	bool any = c->has_dsn;

	for (size_t i = 0; i < c->n_targets; i++)
		any |= c->targets[i].dsn[0] != '\0';
	if (any)
		(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

int options_reload(const struct options *o, struct config *ret,
		   struct config_faults *faults)
{
	struct config c;
	int load, r;

	if (o->config_path == NULL)
		return -ENOENT;
	/* All that is wrong is said at once. */
	load = config_load(o->config_path, &c, faults);
	lay_over(o, &c);
	r = config_resolve(&c, getenv, faults);
	hide(&c);
	if (load < 0)
		r = load;
	if (r < 0)
		config_fini(&c);
	else
		*ret = c;
	return r;
}

static const char *or_null(const char *text)
{
	return text[0] == '\0' ? NULL : text;
}

/* For ship, whose libcurl reads them: the lower case first. */
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
		if (v[i].value[0] != '\0' &&
		    setenv(v[i].variable, v[i].value, 1) < 0)
			log_error("no memory for %s", v[i].variable);
}

static void use_config(struct options *o)
{
	const struct config *c = &o->config;

	set_proxies(c);
	o->shutdown_timeout_s = c->shutdown_timeout_s;
	o->dsn = c->has_dsn ? c->dsn : NULL;
	o->socket = or_null(c->socket);
	if (o->socket == NULL && o->n_pids == 0)
		o->socket = CONFIG_SOCKET_DEFAULT;
	o->spool = strcmp(c->spool, "none") == 0 ? "" : or_null(c->spool);
	o->ca_certs = or_null(c->ca_certs);
	o->client_cert = or_null(c->client_cert);
	o->client_key = or_null(c->client_key);
	o->retry_5xx = c->retry_5xx;
	o->rate_hz = c->rate_hz;
	o->chunk_seconds = c->chunk_seconds;
	o->max_frames = c->max_frames;
	o->cpu_budget = c->cpu_budget;
	o->release = c->release;
	o->release_env = c->release_env;
	o->environment = c->environment;
	o->platform = c->platform;
	o->symbols = c->symbols;
	o->debug = c->debug;
}

void options_replace(struct options *o, struct config *config)
{
	config_fini(&o->config);
	o->config = *config;
	explicit_bzero(config, sizeof(*config));
	use_config(o);
}

static void check(struct config_faults *faults, int r, const struct options *o)
{
	config_faults_tell(faults);
	if (r < 0)
		exit(2);
	exit(config_print(&o->config, STDOUT_FILENO) < 0 ? EXIT_FAILURE
							 : EXIT_SUCCESS);
}

/* A V1 profile is one transaction's, and the server takes no longer ones. */
static void check_transaction(const struct options *o)
{
	const char *name = o->transaction;

	if (name == NULL)
		return;
	if (o->n_pids != 1)
		usage_error("--transaction", "needs one --pid", name);
	if (o->duration_s <= 0 || o->duration_s > PROFILE_V1_MAX_S)
		usage_error("--transaction",
			    "needs a --duration of 30 seconds at most", name);
	if (name[0] == '\0' || strlen(name) > TRANSACTION_MAX)
		usage_error("--transaction", "empty, or longer than 200 bytes",
			    name);
	for (const char *at = name; *at != '\0';) {
		const size_t n = profile_utf8_length(at);

		if (n == 0 || (unsigned char)*at < 0x20 || *at == 0x7f)
			usage_error("--transaction",
				    "not UTF-8, or with control characters",
				    name);
		at += n;
	}
}

/* Without either there is nothing to do. */
static void require_something(const struct options *o, bool is_default)
{
	if (o->n_pids > 0 || !is_default || access(o->config_path, F_OK) == 0)
		return;
	log_error("no --pid is given, and there is no %s: what shall be "
		  "profiled? (--help shows the usage)",
		  o->config_path);
	exit(2);
}

void options_parse(int argc, char **argv, struct options *ret)
{
	static struct config_faults faults;
	struct options *o = ret;
	struct config config;
	bool is_check = false, is_default;
	int i, r;

	*o = (struct options){.argc = argc, .argv = argv};
	config_init(&o->config);
	/* getopt writes its own line, which begins with argv[0]. */
	opterr = 0;
	while ((i = next_option(argc, argv)) >= 0)
		take_option(o, (size_t)i, optarg, &is_check);
	if (optind < argc)
		usage_error("argument", "not expected", argv[optind]);
	check_transaction(o);
	is_default = o->config_path == NULL && (o->n_pids == 0 || is_check);
	if (is_default)
		o->config_path = CONFIG_PATH_DEFAULT;
	require_something(o, is_default);
	if (o->config_path == NULL) {
		r = config_resolve(&o->config, getenv, &faults);
		hide(&o->config);
	} else {
		r = options_reload(o, &config, &faults);
		if (r == 0)
			options_replace(o, &config);
	}
	if (is_check)
		check(&faults, r, o);
	config_faults_tell(&faults);
	if (r < 0)
		exit(2);
	use_config(o);
}
