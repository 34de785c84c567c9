/*
 * Recheck queue: the processes that discovery is to look at, each when it is due. There is
 * one entry for each pid, however often an event reports it in between, so a process that
 * renames itself all the time costs no more checks than another.
 */
#ifndef DAEMON_BROKER_DISCOVERY_RECHECK_QUEUE_H
#define DAEMON_BROKER_DISCOVERY_RECHECK_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/table.h"
#include "lib/base/util.h"

/*
 * The forks of a second on a machine that does nothing else, and those that
 * are looked at again (discovery.c).
 */
#define RECHECK_QUEUE_MAX 65536

enum recheck_of {
	RECHECK_FORK,  /* this pid is another process than before */
	RECHECK_EXEC,  /* its program may be: what was known may not hold */
	RECHECK_OTHER, /* something else about it may have changed */
};

struct recheck {
	int32_t pid;
	enum recheck_of of;
	uint64_t born_ns; /* itself or its program, by CLOCK_MONOTONIC */
	uint64_t due_ns;  /* to be looked at then */
};

struct recheck_queue {
	struct recheck *v; /* in no order */
	size_t n, size;
	struct table places; /* of pids in v */
	size_t at, left;     /* of this turn */
};

void recheck_queue_init(struct recheck_queue *s);
/* Safe on a zero-initialised struct. */
void recheck_queue_fini(struct recheck_queue *s);

/*
 * Adds an entry, or updates the one of that pid: a fork or an exec replaces it; for any other
 * change the earlier due time holds. Returns 0, -ENOSPC or -ENOMEM.
 */
must_check int recheck_queue_add(struct recheck_queue *s, const struct recheck *new);

/*
 * A turn visits each entry once, from where the last turn ended, so that a caller who stops
 * in the middle disadvantages no entry. recheck_queue_take removes the next entry that is due;
 * false at the end of the turn. Entries may be added in between.
 */
void recheck_queue_turn(struct recheck_queue *s);
bool recheck_queue_take(struct recheck_queue *s, uint64_t now_ns, struct recheck *ret);

#endif
