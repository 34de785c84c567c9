/*
 * What the daemon has to do without: capabilities, if root has started it, and
 * what a filter or a namespace refuses. One table says what each costs; the log
 * at the start, `status` and `doctor` have their lines from it, and
 * docs/sentry-profd.8 repeats it.
 *
 * A capability that the daemon does without at no cost is not missing.
 */
#ifndef DAEMON_COMMON_MISSING_H
#define DAEMON_COMMON_MISSING_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/common/privileges.h"

struct missing {
	const char *name;  /* "CAP_SYS_NICE" */
	const char *costs; /* what is lost without it */
	const char *add;   /* how it is had */
};

struct missing_facts {
	capability_set have;	/* permitted */
	bool in_user_namespace; /* the kernel counts some capabilities there for
				   nothing */
	bool no_getfd;		/* pidfd_getfd(2) is refused */
	bool no_connector;	/* processes are to be found, and nobody tells */
};

/* Of this process; no_connector is false. */
void missing_look(struct missing_facts *ret);

/* Room for all of the table. */
#define MISSING_MAX 9

/* Writes what is missing, the worst first; the texts are constants. */
size_t missing_find(const struct missing_facts *facts, struct missing ret[MISSING_MAX]);

#endif
