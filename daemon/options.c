#include "daemon/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/log.h"
#include "daemon/spool_dir.h"
#include "lib/unwind/unwind.h"

static const char help[] =
	"usage: sentry-profd --pid PID [--pid PID]... [option]...\n"
	"\n"
	"Profiles running processes from outside and sends what it finds to\n"
	"Sentry. Without --dsn and --output the envelopes go into a new\n"
	"directory in the current one.\n"
	"\n"
	"  --pid PID            process to profile; may be given several "
	"times\n"
	"  --duration SECONDS   stop after this long (default: until stopped, "
	"or\n"
	"                       the target ends)\n"
	"  --dsn DSN            where to send to (default: $SENTRY_DSN)\n"
	"  --output DIR         write every envelope into this directory\n"
	"  --stats FILE         write figures of the run as JSON\n"
	"  --spool DIR          where chunks wait for a server that does not "
	"answer;\n"
	"                       none: in memory (default: for root\n"
	"                       " SPOOL_DIR_DEFAULT ", else none)\n"
	"  --shutdown-timeout SECONDS\n"
	"                       for the server to take the last chunks "
	"(default: 2)\n"
	"  --retry-5xx          send again what 502, 503 or 504 answer\n"
	"  --ca-certs FILE      authorities to trust besides the system's, in "
	"PEM\n"
	"  --client-cert FILE   certificate to show to the server, in PEM\n"
	"  --client-key FILE    its key (default: it is in the same file)\n"
	"  --rate HZ            samples a second, 1 to 1000 (default: 101)\n"
	"  --chunk-seconds N    length of a chunk, 1 to 60 (default: 60)\n"
	"  --max-frames N       frames of a stack, 1 to 4096 (default: 512)\n"
	"  --cpu-budget PERCENT of one processor that sentry-profd may "
	"use; above it\n"
	"                       it samples at a lower rate (default: 5; 0: "
	"no limit)\n"
	"  --release R          release of the target (default: "
	"$SENTRY_RELEASE\n"
	"                       of the target, then of this command, then "
	"made\n"
	"                       of the executable's name and build-id)\n"
	"  --environment E      default: $SENTRY_ENVIRONMENT, then production\n"
	"  --platform P         rust (default; Sentry symbolicates) or native\n"
	"  --symbols S          none, names (default) or lines: what is read "
	"from\n"
	"                       the target's files\n"
	"  --debug              say more on stderr\n"
	"  --quiet              nothing on stdout: no table at the end\n"
	"  --version            print the version\n"
	"  --help               print this text\n"
	"\n"
	"SIGINT and SIGTERM finish the last chunk and leave the target "
	"running.\n";

__attribute__((noreturn)) static void
usage_error(const char *option, const char *problem, const char *value)
{
	log_error("%s: %s: '%s' (--help shows the usage)", option, problem,
		  value);
	exit(2);
}

static uint32_t parse_number(const char *option, const char *text, uint32_t min,
			     uint32_t max)
{
	char *end, problem[64];
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 ||
	    n < min || n > max) {
		(void)snprintf(problem, sizeof(problem),
			       "not a number from %u to %u", min, max);
		usage_error(option, problem, text);
	}
	return (uint32_t)n;
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

static void parse_text(const char *option, const char *text,
		       char ret[MSG_TEXT_MAX])
{
	size_t n = strlen(text);

	if (n == 0)
		usage_error(option, "empty", text);
	/* Sentry takes 200 characters, and no control characters. */
	if (n > 200)
		usage_error(option, "longer than 200 bytes", text);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			usage_error(option, "contains control characters",
				    text);
	memcpy(ret, text, n + 1);
}

static enum unwind_symbols parse_symbols(const char *text)
{
	static const char *const words[] = {
		[UNWIND_SYMBOLS_NONE] = "none",
		[UNWIND_SYMBOLS_NAMES] = "names",
		[UNWIND_SYMBOLS_LINES] = "lines",
	};

	for (size_t i = 0; i < array_size(words); i++)
		if (strcmp(text, words[i]) == 0)
			return (enum unwind_symbols)i;
	usage_error("--symbols", "neither none, names nor lines", text);
}

static void add_pid(struct options *o, const char *text)
{
	int32_t pid = (int32_t)parse_number("--pid", text, 1, INT32_MAX);

	if (o->n_pids == array_size(o->pids))
		usage_error("--pid", "too many processes", text);
	for (size_t i = 0; i < o->n_pids; i++)
		if (o->pids[i] == pid)
			usage_error("--pid", "given twice", text);
	o->pids[o->n_pids++] = pid;
}

static void take_environment(struct options *o)
{
	const char *value;

	if (o->dsn == NULL)
		o->dsn = getenv("SENTRY_DSN");
	value = getenv("SENTRY_RELEASE");
	if (value != NULL && *value != '\0')
		parse_text("SENTRY_RELEASE", value, o->release_env);
	value = getenv("SENTRY_ENVIRONMENT");
	if (o->environment[0] == '\0')
		parse_text("SENTRY_ENVIRONMENT",
			   value != NULL && *value != '\0' ? value
							   : "production",
			   o->environment);
}

enum option_id {
	OPTION_PID = 256,
	OPTION_DURATION,
	OPTION_DSN,
	OPTION_OUTPUT,
	OPTION_STATS,
	OPTION_SPOOL,
	OPTION_SHUTDOWN_TIMEOUT,
	OPTION_RETRY_5XX,
	OPTION_CA_CERTS,
	OPTION_CLIENT_CERT,
	OPTION_CLIENT_KEY,
	OPTION_RATE,
	OPTION_CHUNK_SECONDS,
	OPTION_MAX_FRAMES,
	OPTION_CPU_BUDGET,
	OPTION_RELEASE,
	OPTION_ENVIRONMENT,
	OPTION_PLATFORM,
	OPTION_SYMBOLS,
	OPTION_DEBUG,
	OPTION_QUIET,
	OPTION_VERSION,
	OPTION_HELP,
};

static const struct option long_options[] = {
	{"pid", required_argument, NULL, OPTION_PID},
	{"duration", required_argument, NULL, OPTION_DURATION},
	{"dsn", required_argument, NULL, OPTION_DSN},
	{"output", required_argument, NULL, OPTION_OUTPUT},
	{"stats", required_argument, NULL, OPTION_STATS},
	{"spool", required_argument, NULL, OPTION_SPOOL},
	{"shutdown-timeout", required_argument, NULL, OPTION_SHUTDOWN_TIMEOUT},
	{"retry-5xx", no_argument, NULL, OPTION_RETRY_5XX},
	{"ca-certs", required_argument, NULL, OPTION_CA_CERTS},
	{"client-cert", required_argument, NULL, OPTION_CLIENT_CERT},
	{"client-key", required_argument, NULL, OPTION_CLIENT_KEY},
	{"rate", required_argument, NULL, OPTION_RATE},
	{"chunk-seconds", required_argument, NULL, OPTION_CHUNK_SECONDS},
	{"max-frames", required_argument, NULL, OPTION_MAX_FRAMES},
	{"cpu-budget", required_argument, NULL, OPTION_CPU_BUDGET},
	{"release", required_argument, NULL, OPTION_RELEASE},
	{"environment", required_argument, NULL, OPTION_ENVIRONMENT},
	{"platform", required_argument, NULL, OPTION_PLATFORM},
	{"symbols", required_argument, NULL, OPTION_SYMBOLS},
	{"debug", no_argument, NULL, OPTION_DEBUG},
	{"quiet", no_argument, NULL, OPTION_QUIET},
	{"version", no_argument, NULL, OPTION_VERSION},
	{"help", no_argument, NULL, OPTION_HELP},
	{NULL, 0, NULL, 0},
};

static void take_option(struct options *o, int option, const char *value)
{
	switch (option) {
	case OPTION_PID:
		add_pid(o, value);
		break;
	case OPTION_DURATION:
		o->duration_s = parse_seconds("--duration", value);
		break;
	case OPTION_DSN:
		o->dsn = value;
		break;
	case OPTION_OUTPUT:
		o->output = value;
		break;
	case OPTION_STATS:
		o->stats = value;
		break;
	case OPTION_SPOOL:
		if (*value == '\0')
			usage_error("--spool", "empty", value);
		o->spool = strcmp(value, "none") == 0 ? "" : value;
		break;
	case OPTION_SHUTDOWN_TIMEOUT:
		o->shutdown_timeout_s =
			parse_seconds("--shutdown-timeout", value);
		break;
	case OPTION_RETRY_5XX:
		o->retry_5xx = true;
		break;
	case OPTION_CA_CERTS:
		o->ca_certs = value;
		break;
	case OPTION_CLIENT_CERT:
		o->client_cert = value;
		break;
	case OPTION_CLIENT_KEY:
		o->client_key = value;
		break;
	case OPTION_RATE:
		o->rate_hz =
			parse_number("--rate", value, 1, OPTIONS_RATE_MAX_HZ);
		break;
	case OPTION_CHUNK_SECONDS:
		o->chunk_seconds = parse_number("--chunk-seconds", value, 1,
						OPTIONS_CHUNK_MAX_SECONDS);
		break;
	case OPTION_MAX_FRAMES:
		o->max_frames = parse_number("--max-frames", value, 1,
					     UNWIND_FRAMES_MAX);
		break;
	case OPTION_CPU_BUDGET:
		o->cpu_budget = parse_number("--cpu-budget", value, 0,
					     OPTIONS_CPU_BUDGET_MAX);
		break;
	case OPTION_RELEASE:
		parse_text("--release", value, o->release);
		break;
	case OPTION_ENVIRONMENT:
		parse_text("--environment", value, o->environment);
		break;
	case OPTION_PLATFORM:
		if (strcmp(value, "rust") != 0 && strcmp(value, "native") != 0)
			usage_error("--platform", "neither rust nor native",
				    value);
		parse_text("--platform", value, o->platform);
		break;
	case OPTION_SYMBOLS:
		o->symbols = parse_symbols(value);
		break;
	case OPTION_DEBUG:
		o->debug = true;
		break;
	case OPTION_QUIET:
		o->quiet = true;
		break;
	case OPTION_VERSION:
		printf("sentry-profd %s\n", SENTRY_PROFD_VERSION);
		exit(EXIT_SUCCESS);
	case OPTION_HELP:
		(void)fputs(help, stdout);
		exit(EXIT_SUCCESS);
	default:
		exit(2);
	}
}

void options_parse(int argc, char **argv, struct options *ret)
{
	struct options *o = ret;
	int option;

	*o = (struct options){
		.rate_hz = 101,
		.shutdown_timeout_s = 2, /* as Sentry's SDKs */
		.chunk_seconds = 60,
		.max_frames = 512,
		.cpu_budget = 5,
		.platform = "rust",
		.symbols = UNWIND_SYMBOLS_NAMES,
	};
	/* getopt writes its own line, which begins with argv[0]. */
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":", long_options, NULL)) !=
	       -1) {
		if (option == ':')
			usage_error(argv[optind - 1], "needs a value", "");
		if (option == '?')
			usage_error("option", "not known", argv[optind - 1]);
		take_option(o, option, optarg);
	}
	if (optind < argc)
		usage_error("argument", "not expected", argv[optind]);
	if (o->n_pids == 0) {
		log_error("no --pid is given: what shall be profiled? (--help "
			  "shows the usage)");
		exit(2);
	}
	if (o->client_key != NULL && o->client_cert == NULL)
		usage_error("--client-key", "needs --client-cert",
			    o->client_key);
	take_environment(o);
}
