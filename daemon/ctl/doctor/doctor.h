/*
 * sentry-profctl doctor: looks for what keeps processes from being profiled
 * well, and says what to do. Each finding is a line; the exit status tells the
 * worst of them.
 *
 * It changes nothing. What it starts are a child of its own that it traces for
 * a moment, and, where no daemon is asked, a sentry-profd that checks its
 * configuration and asks the servers. Every part has a file of its own,
 * doctor_*.c.
 */
#ifndef DAEMON_CTL_DOCTOR_DOCTOR_H
#define DAEMON_CTL_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/common/finding.h"
#include "daemon/common/privileges.h"
#include "lib/base/util.h"

struct doctor {
	const char *socket; /* of the daemon; a path */
	const char *config; /* file, NULL: none was given */
	int32_t pid;	    /* 0: no process was given */
	enum finding worst;
	/* What was found of the daemon. */
	int32_t tracer;	    /* its capture process; 0: none is known */
	int32_t daemon_pid; /* 0: it has none in our pid namespace */
	/* What it tells of itself, to those who may operate it alone. */
	bool is_told;
	capability_set capabilities; /* that it has, or may hand on */
	int findings_fd;	     /* on which its findings come; -1: it is not asked */
};

/*
 * For main: argv[0] is "doctor". Returns EXIT_SUCCESS, EXIT_FAILURE where a
 * fault was found, 3 where there are warnings only, or 2 for wrong usage.
 */
int doctor_run(int argc, char **argv);

/* The lines of --help-all that are about it. */
extern const char doctor_help[];

/* finding_write() of what doctor finds itself. */
#define doctor_say(d, finding, subject, ...) \
	finding_write(stdout, &(d)->worst, finding, subject, __VA_ARGS__)

/* doctor_host.c: the machine, and what its kernel permits. */
void doctor_host(struct doctor *d);
/* doctor_delivery.c: the configuration, and the servers that it names. */
void doctor_delivery(struct doctor *d);
/* doctor_daemon.c: the daemon, and what it says of the process. */
void doctor_daemon(struct doctor *d);
/* doctor_target.c: the process; false if there is nothing more to look at. */
bool doctor_target(struct doctor *d);
/* doctor_files.c: its files, and code that is in none. */
void doctor_files(struct doctor *d);

#endif
