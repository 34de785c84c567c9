/*
 * sentry-profctl: the command line tool for users of sentry-profd.
 *
 * Commands that ask the running daemon: status, start, stop, attach, detach, profiler-id,
 * reload, metrics (daemon_commands.h), healthy, record, top, stack.
 * Commands that need no daemon: convert, view, compare, send (profiles in files).
 * doctor asks the daemon if one runs, and looks at the machine itself.
 *
 * sentry-profctl has the rights of the user who runs it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/common/log.h"
#include "daemon/common/option_fault.h"
#include "daemon/common/version.h"
#include "daemon/ctl/convert/compare.h"
#include "daemon/ctl/convert/convert.h"
#include "daemon/ctl/convert/view.h"
#include "daemon/ctl/daemon_commands.h"
#include "daemon/ctl/doctor/doctor.h"
#include "daemon/ctl/healthy.h"
#include "daemon/ctl/record.h"
#include "daemon/ctl/send.h"
#include "daemon/ctl/stack.h"
#include "daemon/ctl/top/top.h"
#include "lib/base/util.h"

/* At most 24 lines of 80 columns: it fits a terminal. */
static const char help[] =
	"usage: sentry-profctl [--socket PATH] COMMAND [option]... [PID]\n"
	"\n"
	"  status, healthy     what the daemon profiles; whether it works, for probes\n"
	"  start, stop PID     start or stop to profile a process of the configuration\n"
	"  attach, detach PID  the same for any process\n"
	"  profiler-id PID     the profiler_id that its chunks have now\n"
	"  reload, metrics     read the configuration again; metrics for Prometheus\n"
	"  doctor [PID]        find out what prevents good profiles\n"
	"  stack PID           print the stack of each thread\n"
	"\n"
	"  top [PID]           show the busiest functions of a process, live\n"
	"  record PID -o FILE  profile a process and write a file\n"
	"  view IN...          show profiles in files in the browser\n"
	"  convert IN... -o OUT\n"
	"                      convert them: OUT.folded, OUT.pb.gz, OUT.html, ...\n"
	"  compare A B         show which functions grew or shrank from A to B\n"
	"  send IN...          send profiles in files to a server\n"
	"\n"
	"  --help-all          print all options; COMMAND --help: those of one command\n"
	"\n"
	"examples:\n"
	"  sentry-profctl status --watch\n"
	"  sentry-profctl doctor 4711\n"
	"  sentry-profctl record 4711 --duration 10 -o profile.html\n";

/* The shell completion reads commands from the words at the start of lines of --help-all. */
static const char help_all[] = "usage: sentry-profctl [--socket PATH] COMMAND [option]... [PID]\n"
			       "       sentry-profctl --version | --help | --help-all\n"
			       "\n";

static int version(void)
{
	printf("sentry-profctl %s\n", version_text);
	return EXIT_SUCCESS;
}

/* All commands but those of daemon_commands.h. */
static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help; /* the part of --help-all */
} commands[] = {
	{"healthy", healthy_run, healthy_help},
	{"stack", stack_run, stack_help},
	{"doctor", doctor_run, doctor_help},
	{"convert", convert_run, convert_help},
	{"view", view_run, view_help},
	{"compare", compare_run, compare_help},
	{"send", send_run, send_help},
	{"record", record_run, record_help},
	{"top", top_run, top_help},
};

static void print_help_all(void)
{
	(void)fputs(help_all, stdout);
	(void)fputs(daemon_commands_help, stdout);
	for (size_t i = 0; i < array_size(commands); i++)
		(void)fputs(commands[i].help, stdout);
}

/* Stores the names of all commands. Returns how many there are. */
#define COMMANDS_MAX 20
static size_t all_commands(const char *ret[COMMANDS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < array_size(commands); i++)
		ret[n++] = commands[i].name;
	for (size_t i = 0; daemon_commands_name(i) != NULL; i++)
		if (n < COMMANDS_MAX)
			ret[n++] = daemon_commands_name(i);
	return n;
}

static bool is_command(const char *word)
{
	const char *names[COMMANDS_MAX];
	const size_t n = all_commands(names);

	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], word) == 0)
			return true;
	return false;
}

static int no_command(const char *word)
{
	const char *names[COMMANDS_MAX];
	const size_t n = all_commands(names);
	const char *nearest = option_nearest(word, names, n);

	if (nearest != NULL)
		log_error("no such command: '%s': did you mean %s? (see --help)", word, nearest);
	else
		log_error("no such command: '%s' (see --help)", word);
	return EXIT_USAGE;
}

/* Prints the part of --help-all about a command, without the empty line before it. */
static int print_help_of_command(const char *text)
{
	(void)fputs(text[0] == '\n' ? text + 1 : text, stdout);
	return EXIT_SUCCESS;
}

static int run(int argc, char **argv)
{
	const bool wants_help =
		argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);

	for (size_t i = 0; i < array_size(commands); i++) {
		if (strcmp(argv[0], commands[i].name) != 0)
			continue;
		return wants_help ? print_help_of_command(commands[i].help)
				  : commands[i].run(argc, argv);
	}
	return wants_help ? print_help_of_command(daemon_commands_help)
			  : daemon_commands_run(argc, argv);
}

/* What a command has printed may be in a buffer still. A command that has failed has said why. */
static int end(int status)
{
	const int r = flush_stream(stdout);

	if (r == 0 || status != EXIT_SUCCESS)
		return status;
	log_error("cannot write to standard output: %s", strerror(-r));
	return EXIT_FAILURE;
}

/* Moves options before the command behind it, so that the command parses them. */
int main(int argc, char **argv)
{
	enum { SOCKET = OPTION_LONG, VERSION, HELP_ALL };
	static const struct option options[] = {
		{"socket", required_argument, NULL, SOCKET},
		{"version", no_argument, NULL, VERSION},
		{"help", no_argument, NULL, 'h'},
		{"help-all", no_argument, NULL, HELP_ALL},
		{0},
	};
	char *command;
	int c;

	log_init("sentry-profctl", false);
	while ((c = option_next("before the command", argc, argv, "+:h", options, NULL)) != -1) {
		if (c == VERSION)
			return end(version());
		if (c == 'h') {
			(void)fputs(help, stdout);
			return end(EXIT_SUCCESS);
		}
		if (c == HELP_ALL) {
			print_help_all();
			return end(EXIT_SUCCESS);
		}
		if (c != SOCKET)
			return EXIT_USAGE;
	}
	if (optind >= argc) {
		(void)fputs(help, stderr);
		return EXIT_USAGE;
	}
	command = argv[optind];
	if (!is_command(command))
		return no_command(command);
	memmove(argv + 2, argv + 1, (size_t)(optind - 1) * sizeof(*argv));
	argv[1] = command;
	optind = 0; /* getopt(3) starts again */
	return end(run(argc - 1, argv + 1));
}
