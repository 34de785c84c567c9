/*
 * What the daemon has to do without: capabilities, if root has started it, and
 * what a filter or a namespace refuses. One table says what each costs; the log
 * at the start, `status` and `doctor` have their lines from it, and
 * docs/sentry-profd.8 repeats it.
 *
 * A capability that the daemon does without at no cost is not missing.
 */
#ifndef DAEMON_COMMON_LIMITATION_H
#define DAEMON_COMMON_LIMITATION_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/common/privileges.h"

struct limitation {
	const char *name;   /* "CAP_SYS_NICE" */
	const char *effect; /* what is lost without it */
	const char *remedy; /* how it is had */
};

struct limitation_facts {
	capability_set have;	/* permitted */
	bool in_user_namespace; /* the kernel counts some capabilities there for
				   nothing */
	bool no_getfd;		/* pidfd_getfd(2) is refused */
	bool no_connector;	/* processes are to be found, and nobody tells */
};

/* Of this process; no_connector is false. */
void limitation_facts_read(struct limitation_facts *ret);

/* Room for all of the table. */
#define LIMITATIONS_MAX 9

/* Writes what is missing, the worst first; the texts are constants. */
size_t limitation_find(const struct limitation_facts *facts,
		       struct limitation ret[LIMITATIONS_MAX]);

#endif
