/*
 * The table of degraded states: conditions in which sentry-profd does less than it promises, each
 * with its effect and its remedy. daemon/broker/state/degraded.h has the states that are present in
 * a running daemon. degraded_kind_find() finds the states that the machine causes, such as a
 * missing capability or a system call that a seccomp filter refuses.
 */
#ifndef DAEMON_COMMON_DEGRADED_KIND_H
#define DAEMON_COMMON_DEGRADED_KIND_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/common/privileges.h"

/* The gravest first. degraded_kind_texts and sentry-profd(8) describe each. */
enum degraded_kind {
	DEGRADED_VERSION,
	DEGRADED_SERVER,
	DEGRADED_SPOOL,
	DEGRADED_SECTION,
	DEGRADED_SYS_PTRACE,
	DEGRADED_READ_SEARCH,
	DEGRADED_SETUID,
	DEGRADED_SETGID,
	DEGRADED_CHECKPOINT_RESTORE,
	DEGRADED_KILL,
	DEGRADED_SYS_NICE,
	DEGRADED_FIFO,
	DEGRADED_SCHEDSTAT,
	DEGRADED_GETFD,
	DEGRADED_CONNECTOR,
	DEGRADED_CLOCK,
	DEGRADED_FILES,
	DEGRADED_LOG,
	DEGRADED_N,
};

struct degraded_kind_text {
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
/* Indexed by enum degraded_kind. */
extern const struct degraded_kind_text degraded_kind_texts[DEGRADED_N];

/* The facts that degraded_kind_find() judges. */
struct degraded_kind_facts {
	capability_set have; /* the permitted capabilities; 0 if they cannot be read */
	/* The user namespace is not the initial one: some capabilities have no effect in it. */
	bool in_user_namespace;
	bool no_getfd;	   /* pidfd_getfd(2) is refused */
	bool no_schedstat; /* the kernel does not count the run times of threads */
};

/* Reads the facts of this process. */
void degraded_kind_facts_read(struct degraded_kind_facts *ret);

/* Writes to ret the kinds that follow from the facts, the gravest first. Returns their number. */
size_t degraded_kind_find(const struct degraded_kind_facts *facts,
			  enum degraded_kind ret[DEGRADED_N]);

#endif
