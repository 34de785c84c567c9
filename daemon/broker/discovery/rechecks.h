/*
 * Rechecks: a list of the processes that discovery will check, each with the time at which the
 * check is due. Discovery adds an entry when the kernel reports a process, for example, and takes
 * the due entries ten times a second. A pid has at most one entry, however often the kernel reports
 * it, so that a process that renames itself all the time costs no more checks than another.
 */
#ifndef DAEMON_BROKER_DISCOVERY_RECHECKS_H
#define DAEMON_BROKER_DISCOVERY_RECHECKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/table.h"
#include "lib/base/util.h"

/*
 * The maximum number of entries: enough for the forks of one second on a machine that does nothing
 * else, and the processes that are checked again (discovery.c).
 */
#define RECHECKS_MAX 65536

enum recheck_cause {
	RECHECK_FORK,  /* the pid belongs to a new process */
	RECHECK_EXEC,  /* the program may be another one: the section has to be found anew */
	RECHECK_OTHER, /* something else may have changed */
};

struct recheck {
	int32_t pid;
	enum recheck_cause cause;
	/*
	 * When the process started, executed its program or changed: the time from which
	 * min_age_seconds counts. CLOCK_MONOTONIC.
	 */
	uint64_t born_ns;
	uint64_t due_ns; /* when the check is due, by CLOCK_MONOTONIC */
};

struct rechecks {
	struct recheck *v;   /* in no order */
	size_t n, size;	     /* the number of entries, and how many fit into v */
	struct table places; /* the index in v of each pid */
	size_t at, left; /* of the present pass: the next index in v, and how many entries remain */
};

/* Makes an empty list. Does not allocate. */
void rechecks_init(struct rechecks *s);
/* Safe on a zero-initialised struct. */
void rechecks_fini(struct rechecks *s);

/*
 * Adds the entry *new. If the list already has an entry of the same pid:
 * - *new replaces that entry, if new->cause is RECHECK_FORK or RECHECK_EXEC;
 * - otherwise that entry stays, with the earlier of the two due times.
 * Returns 0, -ENOSPC (RECHECKS_MAX entries) or -ENOMEM.
 */
must_check int rechecks_add(struct rechecks *s, const struct recheck *new);

/*
 * Begins a pass, in which calls of rechecks_take() visit entries: as many as there are now. A pass
 * begins where the last one ended, so that a caller that stops early disadvantages no entry. When
 * rechecks_take() removes an entry, the last entry of the array moves to its place. So a pass may
 * visit an entry twice, and another one not at all: the next pass visits that one.
 */
void rechecks_begin_pass(struct rechecks *s);
/*
 * Removes the next entry of the pass that is due by now_ns (CLOCK_MONOTONIC), and copies it to
 * *ret. Returns false at the end of the pass. Entries may be added during a pass.
 */
bool rechecks_take(struct rechecks *s, uint64_t now_ns, struct recheck *ret);

#endif
