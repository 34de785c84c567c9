/*
 * The checks of `sentry-profctl doctor`, one function each, and what they share. doctor.c
 * calls them in the order of this header: doctor_daemon() stores what the others need to
 * know of the daemon.
 */
#ifndef DAEMON_CTL_DOCTOR_DOCTOR_CHECKS_H
#define DAEMON_CTL_DOCTOR_DOCTOR_CHECKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/common/finding.h"
#include "daemon/common/privileges.h"

struct maps;

struct doctor {
	const char *socket;	  /* path of the daemon's socket */
	const char *config;	  /* file of --config; NULL: not given */
	int32_t pid;		  /* the process to check; 0: not given */
	enum finding_grade worst; /* the gravest finding so far */

	/* What doctor_daemon() has found. */
	int32_t daemon_pid;  /* in this pid namespace; 0: no daemon, or not in it */
	int32_t capture_pid; /* the process that traces; 0: not known */
	/*
	 * The capabilities that the daemon has or may pass on. The daemon reports them, and which
	 * of them it lacks, only to users who may operate it; for others has_capabilities is false.
	 */
	bool has_capabilities;
	capability_set capabilities;
	/* The daemon sends its own findings here, for doctor_delivery(); -1: not asked. */
	int findings_fd;
};

/* Prints a finding; the arguments after subject are as for printf(3). */
#define doctor_say(d, finding, subject, ...) \
	finding_write(stdout, &(d)->worst, finding, subject, __VA_ARGS__)

/* Asks the running daemon for its status, and to check its configuration and servers. */
void doctor_daemon(struct doctor *d);

/* Prints the versions of sentry-profctl, sentry-profd-unwind and libdw. */
void doctor_version(struct doctor *d);

/* Checks the kernel, capabilities, Yama, seccomp, limits, /proc and the clock. */
void doctor_host(struct doctor *d);

/*
 * Prints the findings about the configuration and the servers: those of the running daemon,
 * or of a sentry-profd that is started to check the configuration.
 */
void doctor_delivery(struct doctor *d);

/*
 * Checks whether process d->pid can be profiled. Returns false if its files need not be
 * checked: it does not exist or is not a 64-bit program.
 */
bool doctor_target(struct doctor *d);

/*
 * Checks the files with code that process d->pid has mapped: unwind information, names,
 * debug files, build-id; and code that is in no file. Calls doctor_reporter() first.
 */
void doctor_files(struct doctor *d);

/*
 * Prints which crash reporter process d->pid has, if one is visible, and what happens at a crash.
 * maps: its mappings with code.
 */
void doctor_reporter(struct doctor *d, const struct maps *maps);

#endif
