/*
 * sentry-profctl: for the operator.
 *
 *   sentry-profctl stack PID    the stacks of all threads, now
 *   sentry-profctl doctor       what keeps processes from being profiled well
 *   sentry-profctl convert IN.. profiles in files, in other formats
 *   sentry-profctl view IN..    and in the browser
 *   sentry-profctl compare A B  what differs between two profiles
 *   sentry-profctl send IN..    profiles in files, to a server
 *   sentry-profctl record PID   a profile from the daemon that runs
 *   sentry-profctl top [PID]    functions of a process, second by second
 *   sentry-profctl status       and others: what the daemon does (operator.h)
 *
 * doctor, convert, view, compare and send work by themselves, with the rights
 * of who runs them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/common/log.h"
#include "daemon/common/option_fault.h"
#include "daemon/ctl/compare.h"
#include "daemon/ctl/convert.h"
#include "daemon/ctl/doctor/doctor.h"
#include "daemon/ctl/operator.h"
#include "daemon/ctl/record.h"
#include "daemon/ctl/send.h"
#include "daemon/ctl/stack.h"
#include "daemon/ctl/top.h"
#include "daemon/ctl/view.h"

enum {
	EXIT_USAGE = 2,
};

/* 24 lines of 80 columns. */
static const char help[] = "usage: sentry-profctl [--socket PATH] COMMAND [option]... [PID]\n"
			   "\n"
			   "  status, metrics     what the daemon profiles; its figures for "
			   "Prometheus\n"
			   "  start, stop PID     profile a process of the configuration, or "
			   "stop\n"
			   "  attach, detach PID  the same for any process\n"
			   "  profiler-id PID     the id that its chunks have now\n"
			   "  reload              let the daemon read its configuration again\n"
			   "  doctor [PID]        what keeps processes from being profiled well\n"
			   "  stack PID           the stack of each thread, now\n"
			   "\n"
			   "  top [PID]           what processes do, second by second\n"
			   "  record PID -o FILE  a picture of a process that the daemon "
			   "profiles\n"
			   "  view IN...          show profiles that were written to files\n"
			   "  convert IN... -o OUT\n"
			   "                      in other formats: OUT.folded, .pb.gz, .html, "
			   "...\n"
			   "  compare A B         which functions grew or shrank from A to B\n"
			   "  send IN...          to a server\n"
			   "\n"
			   "  --help-all          print every option of them; COMMAND --help: of "
			   "one\n"
			   "\n"
			   "examples:\n"
			   "  sentry-profctl status --watch\n"
			   "  sentry-profctl doctor 4711\n"
			   "  sentry-profctl record 4711 --duration 10 -o profile.html\n";

/* Completion takes its words from it: commands at the beginning of a line. */
static const char help_all[] = "usage: sentry-profctl [--socket PATH] COMMAND [option]... [PID]\n"
			       "       sentry-profctl --version | --help | --help-all\n"
			       "\n";

static int version(void)
{
	printf("sentry-profctl %s\n", SENTRY_PROFD_VERSION);
	return EXIT_SUCCESS;
}

/* The commands; those that ask the daemon have a table of their own. */
static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help; /* of --help-all */
} commands[] = {
	{"stack", stack_run, stack_help},	{"doctor", doctor_run, doctor_help},
	{"convert", convert_run, convert_help}, {"view", view_run, view_help},
	{"compare", compare_run, compare_help}, {"send", send_run, send_help},
	{"record", record_run, record_help},	{"top", top_run, top_help},
};

static void print_help_all(void)
{
	(void)fputs(help_all, stdout);
	(void)fputs(operator_help, stdout);
	for (size_t i = 0; i < array_size(commands); i++)
		(void)fputs(commands[i].help, stdout);
}

/* All names. Returns how many there are. */
#define COMMANDS_MAX 20
static size_t all_commands(const char *ret[COMMANDS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < array_size(commands); i++)
		ret[n++] = commands[i].name;
	for (size_t i = 0; operator_command(i) != NULL; i++)
		if (n < COMMANDS_MAX)
			ret[n++] = operator_command(i);
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
		log_error("no such command: '%s': did you mean %s? (--help "
			  "shows them)",
			  word, nearest);
	else
		log_error("no such command: '%s' (--help shows them)", word);
	return EXIT_USAGE;
}

/* A part of --help-all, without the empty line between two of them. */
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
	return wants_help ? print_help_of_command(operator_help) : operator_run(argc, argv);
}

/* Options before the command are moved behind it, where it reads them. */
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
	opterr = 0;
	while ((c = getopt_long(argc, argv, "+:h", options, NULL)) != -1) {
		if (c == VERSION)
			return version();
		if (c == 'h') {
			(void)fputs(help, stdout);
			return EXIT_SUCCESS;
		}
		if (c == HELP_ALL) {
			print_help_all();
			return EXIT_SUCCESS;
		}
		if (c != SOCKET) {
			option_fault_log(c, "before the command", argv, options);
			return EXIT_USAGE;
		}
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
	optind = 0; /* from the beginning, getopt(3) */
	return run(argc - 1, argv + 1);
}
