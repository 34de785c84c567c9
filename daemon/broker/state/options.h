/*
 * The options of sentry-profd: those of the command line, and the configuration
 * (daemon/config/config.h), whose values the command line overrides. main.c calls options_read(),
 * then forks the command if there is one, then calls options_load().
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

/* The maximum number of --name, --unit and --container together. */
#define OPTIONS_RULES_MAX 32

struct options {
	/*
	 * The processes of --pid, those that startup_match_find() has found for rules, and the
	 * process of the command. If n_pids or n_rules is not 0, there is no discovery.
	 * HEARTBEAT_SLOTS: the most processes that are profiled at a time.
	 */
	int32_t pids[HEARTBEAT_SLOTS];
	size_t n_pids;
	/* One rule for each --name, --unit or --container (discovery/startup_match.h). */
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
	const char *names;	/* the value of --names; NULL: not given */
	bool full_names;	/* --names full: the table at the end has full names of functions */
	bool quiet, check_only; /* --quiet, --check-config */
	/* --servers, with check_only (daemon/broker/control/inspect.h). */
	bool check_servers;
	/* NULL: no file is read, for example with --pid and without --config. */
	const char *config_path;
	const char *program; /* argv[0] */
	/* The last value of each option, by its index in options_known; NULL: not given. */
	const char *given[OPTIONS_MAX];
	struct config config;
	/*
	 * true: neither a file of a configuration is read nor --symbols was given. Then
	 * config.symbols is UNWIND_SYMBOLS_LINES. Files, tables and recordings have source lines
	 * and inlined functions; chunks for servers have neither.
	 */
	bool lines_for_files;
	/*
	 * true: payloads for files have the command lines of processes. This is so if --output
	 * names an HTML page, no file of a configuration is read, and Spotlight, which gets
	 * payloads for files, is off. Command lines may contain secrets, so no other output has
	 * them.
	 */
	bool with_command_line;
};

/* Returns true if sentry-profd is a service: the configuration's sections say what is profiled. */
static inline bool options_is_service(const struct options *o)
{
	return o->n_pids == 0 && o->n_rules == 0 && o->command == NULL;
}

/* Returns true if sentry-profd prints a table of programs and functions at its end. */
static inline bool options_prints_table(const struct options *o)
{
	return !options_is_service(o) && !o->quiet;
}

/*
 * Reads the command line. Leaves no descriptor open that a command could inherit. For --help,
 * --help-all and --version prints the text and exits with 0. Adds errors to faults; options_load()
 * logs them. argv must stay valid as long as *ret.
 */
void options_read(int argc, char **argv, struct options *ret, struct config_faults *faults);

/*
 * Reads the configuration and the environment into o->config, and checks all options. command_pid:
 * the process that will execute o->command, which becomes the first of o->pids; 0: none. What
 * follows depends on the options:
 *
 *                                without errors                 after errors
 *     --check-config             prints o->config, exits 0      logs them, exits 2
 *     --check-config --servers   returns                        returns, o->config is unchanged
 *     otherwise                  returns                        logs them, exits 2 or 1
 *
 * With --servers the errors stay in faults. The status in the last line is 1 (EXIT_FAILURE) if the
 * only errors are those of certificates, keys or the spool, which may be right at another start.
 */
void options_load(struct options *o, int32_t command_pid, struct config_faults *faults);

/*
 * Reads the files of the configuration again. The same command line overrides their values. The
 * caller passes *ret to config_fini() or options_replace(). Returns 0; -ENOENT if no file is in use
 * (o->config_path is NULL); or -EINVAL after errors in the files, which are added to faults.
 * Certificates and keys that cannot be read or are wrong only add warnings.
 */
must_check int options_reload(const struct options *o, struct config *ret,
			      struct config_faults *faults);
/*
 * Reads the configuration as the next start of the daemon would, for an inspection
 * (control/inspect.h). Differs from options_reload() in two ways: if no file of the configuration
 * is in use, *ret has the defaults; and certificates, keys and the spool are checked as at a start.
 * Returns -EAGAIN if only these have errors.
 */
must_check int options_read_as_start(const struct options *o, struct config *ret,
				     struct config_faults *faults);
/* Writes the absolute path of the configuration's file; "": no file is in use. */
#define OPTIONS_PATH_SIZE (2 * PATH_MAX)
void options_config_path(const struct options *o, char ret[OPTIONS_PATH_SIZE]);
/*
 * Replaces o->config by *config, frees the old one, and sets *config to zeros. Also sets the
 * environment variables of proxies (http_proxy, for example), which ships inherit.
 */
void options_replace(struct options *o, struct config *config);

/*
 * Returns the rate of capture's timer, in Hz: the highest of config.rate_hz and the sampling rates
 * of all sections.
 */
uint32_t options_timer_hz(const struct options *o);

#endif
