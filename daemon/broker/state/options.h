/*
 * The command line of sentry-profd, laid over its configuration
 * (daemon/config/config.h).
 */
#ifndef DAEMON_BROKER_STATE_OPTIONS_H
#define DAEMON_BROKER_STATE_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/state/options_keys.h"
#include "daemon/common/output_format.h"
#include "daemon/config/config.h"
#include "daemon/config/config_fault.h"
#include "daemon/msg/heartbeat.h"
#include "lib/base/util.h"

/* Of --name, --unit and --container together. */
#define OPTIONS_RULES_MAX 32

struct options {
	/* With one or more, or with rules, no others are looked for. */
	int32_t pids[HEARTBEAT_SLOTS];
	size_t n_pids;
	/* What --name, --unit and --container describe: daemon/broker/running.h. */
	struct target_config *rules; /* OPTIONS_RULES_MAX; NULL: none */
	size_t n_rules;
	char **command;		 /* behind "--"; NULL: there is none */
	const char *user;	 /* of the command; NULL: the caller's */
	bool children;		 /* of the processes, too */
	double duration_s;	 /* 0: without end */
	const char *transaction; /* of a V1 profile; NULL: none */
	const char *output;
	const struct output_format *picture; /* output is a file; NULL: a directory */
	const char *stats;
	bool quiet, check_only;
	bool check_servers;		/* with check_only: daemon/broker/control/inspect.h */
	const char *config_path;	/* NULL: --pid without --config */
	const char *program;		/* argv[0] */
	const char *given[OPTIONS_MAX]; /* each option's last value, or NULL */
	struct config config;
};

/*
 * Reads the command line alone, before there is anything that a command could
 * inherit. Prints what --help, --help-all and --version ask for and exits with
 * 0. What is wrong is added to faults, for options_load. argv stays in use.
 */
void options_read(int argc, char **argv, struct options *ret, struct config_faults *faults);

/*
 * Then the configuration and the environment. Prints what --check-config asks
 * for and exits with 0; with --servers all that is wrong is left in faults, and
 * o->config is as it was after an error. Else on wrong usage prints a line, of
 * a wrong configuration one for each fault, and exits with 2. command_pid: the
 * process that is to execute o->command; 0: there is none.
 */
void options_load(struct options *o, int32_t command_pid, struct config_faults *faults);

/*
 * The configuration as its files are now, with the same command line laid over
 * it: *ret is to be finished by config_fini, or handed over to options_replace.
 * Returns 0, -EINVAL after faults, -ENOMEM, or -ENOENT if none is read.
 */
must_check int options_reload(const struct options *o, struct config *ret,
			      struct config_faults *faults);
/*
 * The same, as a start of the daemon would find it, with all that is wrong with
 * the files that it names. config_fini is due for *ret.
 */
must_check int options_read_again(const struct options *o, struct config *ret,
				  struct config_faults *faults);
/* The path of its file, from / on; "": there is none. */
#define OPTIONS_PATH_SIZE (2 * PATH_MAX)
void options_config_path(const struct options *o, char ret[OPTIONS_PATH_SIZE]);
/* Takes it over; what was there before is finished. */
void options_replace(struct options *o, struct config *config);

/* The highest sampling rate of a section: the rate of capture's timer. */
uint32_t options_timer_hz(const struct options *o);

#endif
