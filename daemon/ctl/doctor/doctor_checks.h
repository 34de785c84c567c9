/*
 * The checks of `sentry-profctl doctor`, one function each, and their common state. doctor_run()
 * calls the functions in the order of this header, except doctor_reporter(), which doctor_files()
 * calls. doctor_daemon() comes first, because it stores facts about the daemon in struct doctor,
 * which the others read. Each check prints its findings.
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

	/* The members below are set by doctor_daemon(). Before: findings_fd is -1, the others 0. */
	int32_t daemon_pid;  /* in this pid namespace; 0: no daemon, or it has no pid here */
	bool is_elsewhere;   /* the daemon is in another pid namespace: its pids are others */
	int32_t capture_pid; /* the sentry-profd-capture of the daemon; 0: not known */
	bool uses_perf;	     /* sampler = perf: the daemon traces no process */
	/* The daemon has CAP_SYS_PTRACE; without has_capabilities: it runs as root. */
	bool may_trace;
	/* About process pid; false if it is no target of the daemon. */
	bool is_profiled;
	bool stays_on_crash;  /* on_crash = stay: the daemon does not detach at a crash */
	bool attaches_anyway; /* leak_check = attach: also to a process with LeakSanitizer */
	/*
	 * The permitted capabilities of the broker: those that it uses, and those that it only
	 * passes on to its children. Valid if has_capabilities. The daemon reports them only to
	 * operators.
	 */
	bool has_capabilities;
	capability_set capabilities;
	/*
	 * A socket on which the daemon sends its own findings; doctor_delivery() reads and closes
	 * it. -1: the daemon was not asked.
	 */
	int findings_fd;
};

/*
 * Prints a finding, and updates d->worst. finding is its enum finding_grade, subject a word or two
 * (finding_write()). The arguments after subject are as for printf(3).
 */
#define doctor_say(d, finding, subject, ...) \
	finding_write(stdout, &(d)->worst, finding, subject, __VA_ARGS__)

/*
 * Asks the running daemon for its status, and to check its configuration and servers. If no daemon
 * answers, prints a finding.
 */
void doctor_daemon(struct doctor *d);

/* Prints the versions of sentry-profctl, sentry-profd-unwind and libdw. */
void doctor_version(struct doctor *d);

/* Checks the kernel, capabilities, Yama, seccomp, limits, /proc and the clock. */
void doctor_host(struct doctor *d);

/*
 * Prints the findings about the configuration and the servers: those that the running daemon sends
 * to findings_fd. If findings_fd is -1, starts a sentry-profd that checks them.
 */
void doctor_delivery(struct doctor *d);

/*
 * Checks whether process d->pid, not 0, can be profiled. Returns false if doctor_files() is of no
 * use, because the process does not exist or is not a 64-bit program.
 */
bool doctor_target(struct doctor *d);

/*
 * Checks the files with code that process d->pid has mapped: unwind information, names, debug
 * files and build-id. Also checks code that is in no file. Calls doctor_reporter() first.
 */
void doctor_files(struct doctor *d);

/*
 * Prints which crash reporter process d->pid has, if one is visible, and what happens at a crash of
 * the process. maps has the mappings of the process that contain code.
 */
void doctor_reporter(struct doctor *d, const struct maps *maps);

#endif
