/*
 * sentry-profctl: for the operator.
 *
 *   sentry-profctl stack PID    the stacks of all threads, now
 *   sentry-profctl doctor       what keeps processes from being profiled well
 *   sentry-profctl status       and others: what the daemon does (operator.h)
 *
 * stack and doctor work by themselves, with the rights of who runs them.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/doctor.h"
#include "daemon/log.h"
#include "daemon/operator.h"
#include "daemon/process.h"
#include "daemon/stack.h"

enum {
	EXIT_USAGE = 2,
	EXIT_DIFFERENT = 3,
};

static const char help[] =
	"usage: sentry-profctl COMMAND [option]... [PID]\n"
	"       sentry-profctl --version | --help\n"
	"\n"
	"stack PID  prints the stack of every thread of the process, as\n"
	"           sentry-profd sees them, and why each ends where it ends.\n"
	"\n"
	"  --oracle[=NAME]  compare each stack with what another unwinder "
	"sees\n"
	"                   at the same stop: libunwind (the default), dwfl "
	"or\n"
	"                   all. Where one differs, the status is 3.\n"
	"\n";

static void print_help(FILE *out)
{
	(void)fputs(help, out);
	(void)fputs(operator_help, out);
	(void)fputs(doctor_help, out);
}

static bool choose_oracle(const char *name, struct stack_options *options)
{
	const bool all = name != NULL && strcmp(name, "all") == 0;
	const bool dwfl = name != NULL && strcmp(name, "dwfl") == 0;
	const bool unwind = name == NULL || strcmp(name, "libunwind") == 0;

	options->oracles[ORACLE_LIBUNWIND] |= unwind || all;
	options->oracles[ORACLE_LIBDWFL] |= dwfl || all;
	return all || dwfl || unwind;
}

static int fail(int32_t pid, int error)
{
	switch (error) {
	case -ESRCH:
		log_error("no process %d: nothing runs here with this pid",
			  pid);
		break;
	case -ENOEXEC:
		log_error("process %d is a 32-bit program: not supported", pid);
		break;
	case -ETIMEDOUT:
		log_error("process %d does not stop: it waits in the kernel",
			  pid);
		break;
	default:
		log_error("cannot trace process %d: %s (root may, or its owner "
			  "where Yama allows it; and only one tracer at a "
			  "time)",
			  pid, strerror(-error));
		break;
	}
	return EXIT_FAILURE;
}

static int stack(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"oracle", optional_argument, NULL, 'o'},
		{0},
	};
	struct stack_options options = {0};
	struct stack_outcome outcome;
	int c, r;

	while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (c == 'o' && choose_oracle(optarg, &options))
			continue;
		if (c == 'o')
			log_error("stack: no such oracle: '%s'", optarg);
		return EXIT_USAGE;
	}
	if (optind + 1 != argc) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	if (!process_parse_pid(argv[optind], &options.pid)) {
		log_error("stack: not a pid: '%s'", argv[optind]);
		return EXIT_USAGE;
	}
	r = stack_print(&options, &outcome);
	if (r < 0)
		return fail(options.pid, r);
	return outcome.differ > 0 ? EXIT_DIFFERENT : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	log_init("sentry-profctl", false);
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		printf("sentry-profctl %s\n", SENTRY_PROFD_VERSION);
		return EXIT_SUCCESS;
	}
	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		print_help(stdout);
		return EXIT_SUCCESS;
	}
	if (argc >= 2 && strcmp(argv[1], "stack") == 0)
		return stack(argc - 1, argv + 1);
	if (argc >= 2 && strcmp(argv[1], "doctor") == 0)
		return doctor_run(argc - 1, argv + 1);
	if (argc >= 2 && operator_has(argv[1]))
		return operator_run(argc - 1, argv + 1);
	if (argc < 2)
		print_help(stderr);
	else if (argv[1][0] == '-')
		log_error("%s: options stand behind the command, as in "
			  "sentry-profctl status --json (--help shows the "
			  "usage)",
			  argv[1]);
	else
		log_error("no such command: '%s' (--help shows them)", argv[1]);
	return EXIT_USAGE;
}
