/*
 * sentry-profctl doctor: looks for what keeps processes from being profiled
 * well, and says what to do. Each finding is a line; the exit status tells the
 * worst of them.
 *
 * It changes nothing. What it starts are a child of its own that it traces for
 * a moment, and a sentry-profd-ship that asks the server. Every part has a file
 * of its own, doctor_*.c.
 */
#ifndef DAEMON_DOCTOR_H
#define DAEMON_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/config.h"
#include "daemon/privileges.h"
#include "lib/base/util.h"

enum finding {
	FINDING_OK,
	FINDING_WARNING, /* it works, with less */
	FINDING_FAULT,	 /* it does not */
};

/* A path of PATH_MAX below a directory of as much. */
#define CONFIG_MAX 8192

struct doctor {
	const char *socket; /* of the daemon; a path */
	const char *config; /* file, NULL: none was given */
	int32_t pid;	    /* 0: no process was given */
	enum finding worst;
	/* What was found of the daemon. */
	int32_t tracer; /* its capture process; 0: none is known */
	int32_t daemon_pid; /* 0: it has none in our pid namespace */
	/* What it tells of itself, to those who may operate it alone. */
	bool is_told;
	capability_set capabilities;	/* that it has, or may hand on */
	char daemon_config[CONFIG_MAX]; /* the file that it reads; "": none */
};

/*
 * For main: argv[0] is "doctor". Returns EXIT_SUCCESS, EXIT_FAILURE where a
 * fault was found, 3 where there are warnings only, or 2 for wrong usage.
 */
int doctor_run(int argc, char **argv);

/* The lines of --help-all that are about it. */
extern const char doctor_help[];

/* A finding about subject, a word or two: one line, control bytes escaped. */
void doctor_say(struct doctor *d, enum finding finding, const char *subject,
		const char *format, ...) printf_like(4, 5);

/* doctor_host.c: the machine, and what its kernel permits. */
void doctor_host(struct doctor *d);
/* doctor_delivery.c: the configuration, and the servers that it names. */
void doctor_delivery(struct doctor *d);
/*
 * doctor_environment.c: the variables that the daemon has, where it is told of
 * and we may read them; else those that we have, after a line that says so. For
 * config_resolve; doctor_environment_forget is due.
 */
config_env_fn doctor_environment(struct doctor *d);
void doctor_environment_forget(void);
/*
 * doctor_options.c: lays the daemon's command line over *c, where it is told of
 * and was not given another file. Relative paths in it are the daemon's: from
 * then on they are taken from its directory.
 */
void doctor_options(struct doctor *d, struct config *c);
/* doctor_daemon.c: the daemon, and what it says of the process. */
void doctor_daemon(struct doctor *d);
/* doctor_target.c: the process; false if there is nothing more to look at. */
bool doctor_target(struct doctor *d);
/* doctor_files.c: its files, and code that is in none. */
void doctor_files(struct doctor *d);

#endif
