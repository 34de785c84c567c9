/*
 * While the server takes no profiles nothing is sampled: no thread is stopped
 * for what cannot go anywhere. The runs of that DSN are stopped, and others are
 * started when the limit is over (instances_check).
 *
 * With --output there is somewhere to go, and sampling goes on.
 */
#ifndef DAEMON_BROKER_DELIVERY_LIMIT_H
#define DAEMON_BROKER_DELIVERY_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "proto/dsn.h"

/* DSNs; each has a ship, which is a process, and a limit. */
#define SHIPS_MAX 32

struct broker;
struct instance;
struct ship;

/* The server takes no profiles (limit.c). */
struct limit {		   /* of a DSN */
	uint64_t until_ns; /* by clock_boot_ns; 0: never */
	bool holds;	   /* nothing is to be sampled because of it, */
	uint64_t since_ns; /* by broker_now_ns */
	uint64_t paused_ns, pauses;
};

/* It says until when, by clock_boot_ns; an earlier time than before, too. */
must_check int limit_take(struct ship *s, uint64_t until_ns);

/* The ship is about to be freed: b->limits_gone keeps its figures. */
void limit_ship_gone(struct broker *b, const struct ship *s);

/* At every turn: begins and ends the pauses. */
void limit_check(struct broker *b);

/* Nothing of it is to be sampled now. */
bool limit_holds(const struct instance *i);

/* Over the whole run, of all DSNs. */
struct limit_sum {
	uint64_t pauses;
	uint64_t paused_ns;
	uint64_t until_ns; /* the latest that holds, by clock_boot_ns; 0: none */
};
void limit_sum(const struct broker *b, struct limit_sum *ret);

/* Of one server: of all DSNs that lead there, whatever their keys. */
struct limit_server {
	char name[DSN_LABEL_SIZE]; /* proto/dsn.h: there is no key in it */
	uint64_t limited_ns;	   /* it takes nothing for so long yet */
	struct limit_sum sum;
	int64_t clock_ahead_s; /* of ours: what the last answers said */
	uint64_t delivered_ns; /* a chunk last, by clock_mono_ns; 0: none yet */
};
/* Returns how many of ret there are, each of another name. */
size_t limit_servers(const struct broker *b, struct limit_server ret[SHIPS_MAX]);

#endif
