/*
 * Finds the limitations of the daemon on this machine: capabilities that root lacks, and system
 * calls or sockets that a seccomp filter or a namespace refuses. A table has the effect of each
 * limitation and its remedy. The log at the start, `status` and `doctor` print them;
 * sentry-profd(8) has the same table.
 *
 * A capability whose absence has no effect is no limitation.
 */
#ifndef DAEMON_COMMON_LIMITATION_H
#define DAEMON_COMMON_LIMITATION_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/common/privileges.h"

struct limitation {
	const char *name;   /* what is missing: "CAP_SYS_NICE" */
	const char *effect; /* what does not work without it */
	const char *remedy; /* how to get it */
	/*
	 * true: a promise of docs/SAFETY.md or docs/SECURITY.md does not hold. false: the profiles
	 * have less, or come later.
	 */
	bool breaks_promise;
};

/* The facts that limitation_find() judges. */
struct limitation_facts {
	capability_set have;	/* the permitted capabilities */
	bool in_user_namespace; /* not the initial one: some capabilities have no effect there */
	bool no_getfd;		/* pidfd_getfd(2) is refused */
	/* The daemon looks for processes to profile, and the kernel refuses the proc connector. */
	bool no_connector;
};

/* Reads the facts of this process. Sets no_connector to false: the caller knows that fact. */
void limitation_facts_read(struct limitation_facts *ret);

/* The number of rows of the table. */
#define LIMITATIONS_MAX 9

/* Writes the limitations, the gravest first, and returns their number. The texts are constants. */
size_t limitation_find(const struct limitation_facts *facts,
		       struct limitation ret[LIMITATIONS_MAX]);

#endif
