/*
 * The options of sentry-profd: its command line, which overrides its configuration
 * (daemon/config/config.h). main.c calls options_read(), then forks the command if there is one,
 * then calls options_load().
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
#include "daemon/msg/msg_capture.h"
#include "lib/base/util.h"

/* The number of --name, --unit and --container together. */
#define OPTIONS_RULES_MAX 32

struct options {
	/*
	 * Processes of --pid, --name, --unit and --container (startup_match_find()), and the
	 * command. With at least one, or with rules, there is no discovery.
	 */
	int32_t pids[HEARTBEAT_SLOTS];
	size_t n_pids;
	/* What --name, --unit and --container describe (discovery/startup_match.h). */
	struct section_config *rules; /* OPTIONS_RULES_MAX elements; NULL: none */
	size_t n_rules;
	char **command;		 /* the arguments after "--"; NULL: none */
	const char *user;	 /* user of the command; NULL: the one who started sentry-profd */
	bool children;		 /* --children: also profile children of the processes */
	double duration_s;	 /* 0: no limit */
	const char *transaction; /* name of a V1 profile's transaction; NULL: none */
	const char *output;	 /* path of --output; NULL: not given */
	/* The format if output is a file; NULL: output is a directory. */
	const struct output_format *output_format;
	const char *stats;	/* path of --stats; NULL: not given */
	const char *names;	/* --names, NULL: not given */
	bool full_names;	/* --names full: in the table at the end */
	bool quiet, check_only; /* --quiet, --check-config */
	/* --servers, with check_only (daemon/broker/control/inspect.h). */
	bool check_servers;
	const char *config_path;	/* NULL: no file is read (--pid without --config) */
	const char *program;		/* argv[0] */
	const char *given[OPTIONS_MAX]; /* each option's last value, or NULL */
	struct config config;
	/*
	 * No configuration and no --symbols were given, so config.symbols is UNWIND_SYMBOLS_LINES:
	 * files, tables and recordings have source lines and inlined functions. What is sent has
	 * neither.
	 */
	bool lines_for_files;
};

/* Returns true in a service, in which the configuration's sections say what is profiled. */
static inline bool options_is_service(const struct options *o)
{
	return o->n_pids == 0 && o->n_rules == 0 && o->command == NULL;
}

/* Returns true if the run prints a table of programs and functions at its end. */
static inline bool options_prints_table(const struct options *o)
{
	return !options_is_service(o) && !o->quiet;
}

/*
 * Reads the command line. Call it before the process opens descriptors that a command would
 * inherit. For --help, --help-all and --version prints the text and exits with 0. Adds errors to
 * faults, which options_load() logs. argv must stay valid as long as *ret.
 */
void options_read(int argc, char **argv, struct options *ret, struct config_faults *faults);

/*
 * Reads the configuration and the environment into o->config, and checks all options. command_pid:
 * the process that will execute o->command; 0: none. What follows depends on the options:
 * - --check-config: prints the result and exits, with 0, or with 2 after errors;
 * - --check-config --servers: returns. The errors are in faults; after an error o->config is
 *   unchanged;
 * - otherwise: returns, unless there are errors. Then logs a line for each and exits, with 2, or
 *   with EXIT_FAILURE if the only errors are missing files that the configuration names.
 */
void options_load(struct options *o, int32_t command_pid, struct config_faults *faults);

/*
 * Reads the files of the configuration again, overridden by the same command line. The caller
 * passes *ret to config_fini() or options_replace(). Returns 0; or -ENOENT if no file is in use
 * (o->config_path is NULL). After errors in the files, which are added to faults, returns -EAGAIN
 * if the only ones are missing files that the configuration names, else -EINVAL.
 */
must_check int options_reload(const struct options *o, struct config *ret,
			      struct config_faults *faults);
/*
 * Like options_reload(), but checks the files that the configuration names as a start of the daemon
 * does, and reads the defaults if no file is in use. The caller passes *ret to config_fini().
 */
must_check int options_read_as_start(const struct options *o, struct config *ret,
				     struct config_faults *faults);
/* Writes the absolute path of the configuration's file; "": no file is in use. */
#define OPTIONS_PATH_SIZE (2 * PATH_MAX)
void options_config_path(const struct options *o, char ret[OPTIONS_PATH_SIZE]);
/* Replaces o->config by *config, frees the old one, and sets *config to zeros. */
void options_replace(struct options *o, struct config *config);

/* Returns the highest sampling rate of all sections, which is the rate of capture's timer. */
uint32_t options_timer_hz(const struct options *o);

#endif
