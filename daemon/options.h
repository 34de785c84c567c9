/*
 * The command line of sentry-profd, laid over its configuration
 * (daemon/config.h).
 */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/config.h"
#include "daemon/ctl/ending.h"
#include "daemon/heartbeat.h"
#include "daemon/msg.h"
#include "lib/base/util.h"
#include "lib/unwind/unwind.h"

/* Of --name, --unit and --container together. */
#define OPTIONS_RULES_MAX 32

struct options {
	/* With one or more, or with rules, no others are looked for. */
	int32_t pids[HEARTBEAT_SLOTS];
	size_t n_pids;
	/* What --name, --unit and --container describe: daemon/running.h. */
	struct target_config *rules; /* OPTIONS_RULES_MAX; NULL: none */
	size_t n_rules;
	char **command;	   /* behind "--"; NULL: there is none */
	bool children;	   /* of the processes, too */
	bool has_user;	   /* --user, which is the child's (daemon/command.h) */
	double duration_s; /* 0: without end */
	const char *transaction; /* of a V1 profile; NULL: none */
	const char *output;
	const struct ending *picture; /* output is a file; NULL: a directory */
	const char *stats;
	bool quiet;
	const char *config_path; /* NULL: --pid without --config */
	struct config config;
	int argc;
	char **argv;

	/* Of config, as they are used most. */
	double shutdown_timeout_s;
	const char *dsn;    /* NULL: none */
	const char *socket; /* NULL: none (--pid without it) */
	const char *spool;  /* NULL: not given; "": none */
	const char *ca_certs, *client_cert, *client_key; /* NULL: none */
	bool retry_5xx;
	uint32_t rate_hz;
	uint32_t chunk_seconds;
	uint32_t max_frames;
	uint32_t cpu_budget;	 /* percent of one processor; 0: no limit */
	const char *release;	 /* "" if not given */
	const char *release_env; /* SENTRY_RELEASE, "" if not set */
	const char *environment;
	const char *platform;
	enum unwind_symbols symbols;
	bool debug;
};

/*
 * Fills *ret. Prints what --help, --help-all, --version and --check-config ask
 * for and exits with 0; on wrong usage prints a line, of a wrong configuration
 * one for each fault, and exits with 2. argv stays in use. command_pid: the
 * process that is to execute what follows "--", the first of pids; 0: nothing
 * follows.
 */
void options_parse(int argc, char **argv, int32_t command_pid,
		   struct options *ret);

/*
 * The configuration as its files are now, with the same command line laid over
 * it: *ret is to be finished by config_fini, or handed over to options_replace.
 * Returns 0, -EINVAL after faults, -ENOMEM, or -ENOENT if none is read.
 */
must_check int options_reload(const struct options *o, struct config *ret,
			      struct config_faults *faults);
/* Takes it over; what was there before is finished. */
void options_replace(struct options *o, struct config *config);

#endif
