/*
 * The limitations: states in which sentry-profd does not keep what it promises, each with its
 * effect and its remedy. daemon/broker/state/degraded.h has those that are present in a running
 * daemon; limitation_find() finds those that are a property of the machine: capabilities that root
 * lacks, and system calls that a seccomp filter refuses. sentry-profd(8) has the same table.
 *
 * A capability whose absence has no effect is no limitation.
 */
#ifndef DAEMON_COMMON_LIMITATION_H
#define DAEMON_COMMON_LIMITATION_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/common/privileges.h"

/* The gravest first. */
enum limitation_kind {
	LIMITATION_VERSION,
	LIMITATION_SERVER,
	LIMITATION_SPOOL,
	LIMITATION_SECTION,
	LIMITATION_SYS_PTRACE,
	LIMITATION_READ_SEARCH,
	LIMITATION_SETUID,
	LIMITATION_SETGID,
	LIMITATION_CHECKPOINT_RESTORE,
	LIMITATION_KILL,
	LIMITATION_SYS_NICE,
	LIMITATION_FIFO,
	LIMITATION_SCHEDSTAT,
	LIMITATION_GETFD,
	LIMITATION_CONNECTOR,
	LIMITATION_CLOCK,
	LIMITATION_FILES,
	LIMITATION_LOG,
	LIMITATION_N,
};

struct limitation {
	const char *id;	    /* in status and metrics: "CAP_SYS_NICE" */
	const char *name;   /* what is wrong: "no CAP_SYS_NICE" */
	const char *effect; /* what does not work */
	const char *remedy; /* what the user can do */
	/*
	 * true: a promise of docs/SAFETY.md or docs/SECURITY.md does not hold. false: the profiles
	 * have less, or come later or not at all.
	 */
	bool breaks_promise;
};
extern const struct limitation limitations[LIMITATION_N];

/* The facts that limitation_find() judges. */
struct limitation_facts {
	capability_set have;	/* the permitted capabilities */
	bool in_user_namespace; /* not the initial one: some capabilities have no effect there */
	bool no_getfd;		/* pidfd_getfd(2) is refused */
	bool no_schedstat;	/* the kernel does not count the run times of threads */
};

/* Reads the facts of this process. */
void limitation_facts_read(struct limitation_facts *ret);

/* Writes the limitations that follow from the facts, the gravest first. Returns their number. */
size_t limitation_find(const struct limitation_facts *facts,
		       enum limitation_kind ret[LIMITATION_N]);

#endif
