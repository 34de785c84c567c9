#include "daemon/broker/state/options_keys.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "daemon/broker/state/options.h"
#include "daemon/common/spool_dir.h"
#include "daemon/config/config_value.h"

#define KEY(key)    OPTION_KEY, key, 0
#define RULE(key)   OPTION_RULE, key, 0
#define TEXT(field) OPTION_TEXT, NULL, offsetof(struct options, field)
#define FLAG(field) OPTION_FLAG, NULL, offsetof(struct options, field)
#define OTHER(kind) kind, NULL, 0

/* In the order of --help. */
/* clang-format off */
const struct option_known options_known[] = {
	{0, "--config", "FILE", TEXT(config_path), false,
	 "the configuration, sentry-profd.conf(5) (default: "
	 CONFIG_PATH_DEFAULT "; none with --pid)"},
	{'p', "--pid", "PID", OTHER(OPTION_PID), true,
	 "process to profile; may be given several times"},
	{0, "--name", "GLOB", RULE("comm"), true,
	 "running processes of this name (comm)"},
	{0, "--unit", "UNIT", RULE("unit"), false,
	 "running processes of this unit of systemd"},
	{0, "--container", "ID", RULE("container"), false,
	 "running processes of this container; each of the three may be given "
	 "several times"},
	{0, "--children", NULL, FLAG(children), true,
	 "profile the processes that these fork, too"},
	{0, "--user", "NAME", TEXT(user), false,
	 "run the command as this user (for root)"},
	{'d', "--duration", "S", OTHER(OPTION_DURATION), true,
	 "stop after so many seconds (default: at the target's end)"},
	{0, "--transaction", "NAME", TEXT(transaction), false,
	 "send the run as one transaction with a V1 profile; with --duration "
	 "up to 30 (deprecated)"},
	{0, "--dsn", "DSN", KEY("dsn"), true,
	 "send profiles to this project (default: $SENTRY_DSN)"},
	{0, "--spotlight", "[=URL]", KEY("spotlight"), false,
	 "send a copy to Spotlight (default: $SENTRY_SPOTLIGHT)"},
	{'o', "--output", "PATH", TEXT(output), true,
	 "a directory for every envelope, or one FILE.html, .folded, .pb.gz, "
	 "... of the whole run"},
	{0, "--names", "N", TEXT(names), false,
	 "C++ and Rust names in the table at the end: short (default), without "
	 "template arguments and parameters, or full"},
	{0, "--stats", "FILE", TEXT(stats), false,
	 "write statistics of the run as JSON"},
	{0, "--socket", "PATH", KEY("socket"), false,
	 "where sentry-profctl and programs connect to (default: "
	 CONFIG_SOCKET_DEFAULT "; none with --pid)"},
	{0, "--spool", "DIR", KEY("spool"), false,
	 "where chunks wait for a server that does not answer; none: in memory "
	 "(default: for root " SPOOL_DIR_DEFAULT ", else none)"},
	{0, "--shutdown-timeout", "SECONDS", KEY("shutdown_timeout"), false,
	 "time for sending the last chunks (default: 2)"},
	{0, "--retry-5xx", "[=no]", KEY("retry_5xx"), false,
	 "send a chunk again after the status 502, 503 or 504 (default: with a "
	 "spool)"},
	{0, "--compression", "C", KEY("compression"), false,
	 "compression of what is sent: gzip (default) or zstd"},
	{0, "--ca-certs", "FILE", KEY("ca_certs"), false,
	 "authorities to trust besides the system's, in PEM"},
	{0, "--client-cert", "FILE", KEY("client_cert"), false,
	 "certificate to show to the server, in PEM"},
	{0, "--client-key", "FILE", KEY("client_key"), false,
	 "key of that certificate (default: in the same file)"},
	{0, "--rate", "HZ", KEY("rate_hz"), true,
	 "samples a second, 1 to 1000 (default: 101)"},
	{0, "--chunk-seconds", "N", KEY("chunk_seconds"), false,
	 "length of a chunk, 1 to 60 (default: 60)"},
	{0, "--max-frames", "N", KEY("max_frames"), false,
	 "frames of a stack, 1 to 4096 (default: 512)"},
	{0, "--mode", "M", KEY("mode"), true,
	 "wall (default): running and waiting; cpu: running only"},
	{0, "--sampler", "S", KEY("sampler"), false,
	 "how running threads are sampled: ptrace (default), or perf, which traces no process "
	 "and needs CAP_PERFMON"},
	{0, "--in-app-include", "P", KEY("in_app_include"), false,
	 "patterns of files whose code is the application's"},
	{0, "--in-app-exclude", "P", KEY("in_app_exclude"), false,
	 "patterns of files whose code is not the application's"},
	{0, "--cpu-budget", "PERCENT", KEY("cpu_budget_percent"), false,
	 "share of one processor that sentry-profd may use; above it, rates are "
	 "lowered (default: 5; 0: no limit)"},
	{0, "--release", "R", KEY("release"), false,
	 "release of the target (default: $SENTRY_RELEASE or OpenTelemetry's "
	 "service of the target, then this command's $SENTRY_RELEASE, then "
	 "made of the executable's name and build-id)"},
	{0, "--environment", "E", KEY("environment"), false,
	 "environment of the target (default: $SENTRY_ENVIRONMENT or "
	 "OpenTelemetry's of the target, then this command's, then production)"},
	{0, "--platform", "P", KEY("platform"), false,
	 "rust (default; Sentry symbolicates) or native"},
	{0, "--symbols", "S", KEY("symbols"), false,
	 "what is read from the target's files: none, names or lines; by default "
	 "names for what is sent, and lines for files and tables"},
	{0, "--addresses", "A", KEY("addresses"), false,
	 "addresses of frames: exact, function (one for each function) or "
	 "auto (default)"},
	{0, "--on-crash", "C", KEY("on_crash"), false,
	 "before a crash handler runs: leave (default), so that a crash reporter can trace "
	 "the process, or stay"},
	{0, "--leak-check", "L", KEY("leak_check"), false,
	 "a program with LeakSanitizer, which does not work in a traced process: "
	 "leave (default) or attach"},
	{0, "--check-config", NULL, FLAG(check_only), true,
	 "print the faults of the configuration, or its values"},
	{0, "--servers", NULL, FLAG(check_servers), false,
	 "with --check-config: check the servers, too; with --pid, print which "
	 "section matches the process"},
	{0, "--debug", NULL, KEY("debug"), false, "log more"},
	{0, "--quiet", NULL, FLAG(quiet), false,
	 "print nothing on stdout"},
	{0, "--version", NULL, OTHER(OPTION_VERSION), false,
	 "print the version"},
	{'h', "--help", NULL, OTHER(OPTION_HELP), false,
	 "print the options that matter most"},
	{0, "--help-all", NULL, OTHER(OPTION_HELP_ALL), true,
	 "print every option; sentry-profd(8) describes them"},
};
/* clang-format on */
const size_t options_n_known = array_size(options_known);
_Static_assert(array_size(options_known) <= OPTIONS_MAX, "a value each");

/* "-": arguments that are no options are returned in the order of argv: getopt_long(3). */
#define LETTERS	  "-:p:d:o:h"
#define NO_OPTION 1

static int has_arg(const struct option_known *known)
{
	if (known->argument == NULL)
		return no_argument;
	return known->argument[0] == '[' ? optional_argument : required_argument;
}

int options_next(int argc, char **argv, const char **ret_value, struct option_fault *ret_fault)
{
	static struct option v[array_size(options_known) + 1];
	const int before = optind == 0 ? 1 : optind;
	int option, i = -1;

	for (size_t at = 0; at < options_n_known; at++)
		v[at] = (struct option){.name = options_known[at].name + strlen("--"),
					.has_arg = has_arg(&options_known[at]),
					.val = OPTION_LONG};
	/* Otherwise getopt prints its own error line. */
	opterr = 0;
	option = getopt_long(argc, argv, LETTERS, v, &i);
	*ret_value = optarg != NULL ? optarg : "yes";
	if (option == -1)
		return optind > before ? OPTIONS_COMMAND : OPTIONS_END;
	if (option == NO_OPTION)
		return OPTIONS_ARGUMENT;
	if (option == OPTION_LONG)
		return i;
	for (size_t at = 0; at < options_n_known; at++)
		if (option == options_known[at].letter)
			return (int)at;
	option_fault(option, argv, v, ret_fault);
	return OPTIONS_WRONG;
}

void options_override(const char *const given[OPTIONS_MAX], struct config *c)
{
	char problem[CONFIG_PROBLEM_MAX];

	for (size_t i = 0; i < options_n_known; i++)
		if (given[i] != NULL && options_known[i].kind == OPTION_KEY)
			(void)!config_set(c, options_known[i].key, options_known[i].name, given[i],
					  problem);
}

/* The column at which the text of an option begins, and the length of lines. */
#define TEXT_COLUMN  23
#define TEXT_COLUMNS (80 - TEXT_COLUMN)

/* clang-format off */
static const char usage[] =
"usage: sentry-profd [option]... --pid PID\n"
"       sentry-profd [option]... -- COMMAND [ARG]...\n"
"       sentry-profd [--config FILE] [option]...\n"
"\n"
"Profiles processes from outside: a process that runs, a command that it starts,\n"
"or those that its configuration describes. Profiles go to Sentry or to files.\n"
"\n";

static const char examples[] =
"\n"
"examples:\n"
"  sentry-profd --output profile.html -- du -s /usr\n"
"  sentry-profd --pid 4711 --duration 10 --output profile.html\n"
"  sentry-profd --name redis-server --dsn https://KEY@HOST/PROJECT\n";

static const char usage_all[] =
"usage: sentry-profd [--config FILE] [option]...\n"
"       sentry-profd --pid PID [--pid PID]... [option]...\n"
"       sentry-profd [option]... -- COMMAND [ARG]...\n"
"\n"
"Profiles processes from outside: those that are given, a command that it\n"
"starts, or those that its configuration describes, whenever they start. With\n"
"--pid or a command, and without a DSN and --output, the envelopes go into a\n"
"new directory in the current one.\n"
"\n";

static const char signals[] =
"\n"
"SIGINT and SIGTERM finish the last chunk and leave targets running;\n"
"SIGHUP reads the configuration again.\n";
/* clang-format on */

static void print_option(const struct option_known *o)
{
	const char *argument = o->argument != NULL ? o->argument : "";
	const char *between = argument[0] == '\0' || argument[0] == '[' ? "" : " ";
	const char *text = o->help;
	int column = printf("  %s%s%s", o->name, between, argument);

	if (o->letter != 0)
		column += printf(", -%c%s%s", o->letter, between, argument);
	if (column >= TEXT_COLUMN) {
		printf("\n");
		column = 0;
	}
	while (*text != '\0') {
		size_t n = strlen(text);

		if (n > TEXT_COLUMNS)
			for (n = TEXT_COLUMNS; text[n] != ' ';)
				n--;
		printf("%*s%.*s\n", TEXT_COLUMN - column, "", (int)n, text);
		text += n + (text[n] == ' ');
		column = 0;
	}
}

void options_help(bool all)
{
	(void)fputs(all ? usage_all : usage, stdout);
	for (size_t i = 0; i < options_n_known; i++)
		if (all || options_known[i].is_common)
			print_option(&options_known[i]);
	(void)fputs(all ? signals : examples, stdout);
}
