/*
 * Processes that discovery is to look at, each when it is due: one entry for
 * each pid, however often something is heard of it in between. So a process
 * that renames itself all the time costs no more looks than another one.
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
/* Takes one of zeros, too. */
void recheck_queue_fini(struct recheck_queue *s);

/*
 * Adds one, or what is new to the one of that pid: a fork or an exec takes its
 * place; of something else the sooner look serves both. Returns 0, -ENOSPC or
 * -ENOMEM.
 */
must_check int recheck_queue_add(struct recheck_queue *s, const struct recheck *new);

/*
 * A turn goes once through those that there are, from where the last one ended:
 * whoever stops in the middle disadvantages nobody. recheck_queue_take takes out
 * one that is due; false at the turn's end. In between some may be added.
 */
void recheck_queue_turn(struct recheck_queue *s);
bool recheck_queue_take(struct recheck_queue *s, uint64_t now_ns, struct recheck *ret);

#endif
