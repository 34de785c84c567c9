/*
 * The rate limits of servers. While a server takes no profiles nothing is sampled for it:
 * no thread is stopped for what cannot go anywhere. The runs of the profiler for that DSN
 * are stopped, and others are started when the limit is over (instances_check).
 *
 * Where chunks are written to files, too (has_files: --output), sampling goes on.
 */
#ifndef DAEMON_BROKER_CHILDREN_LIMIT_H
#define DAEMON_BROKER_CHILDREN_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/children/child.h"
#include "lib/base/util.h"
#include "proto/dsn.h"

/*
 * MSG_LIMITED: the ship's server takes nothing until until_ns, by clock_boot_ns; that may
 * be earlier than it said before. Returns 0, or -EPROTO if no server limits for so long.
 */
must_check int limit_take(struct ship *s, uint64_t until_ns, bool has_files);

/* The ship is about to be freed: c->limits_gone keeps its figures. */
void limit_ship_gone(struct children *c, const struct ship *s);

/* At every turn: begins and ends the pauses. */
void limit_check(struct children *c, bool has_files);

/* Nothing for this ship is to be sampled now. Takes NULL: there is no ship yet. */
bool limit_holds(const struct ship *s);

/* Over the whole run, of all DSNs. */
struct limit_sum {
	uint64_t pauses;
	uint64_t paused_ns;
	uint64_t until_ns; /* the latest that holds, by clock_boot_ns; 0: none */
};
void limit_sum(const struct children *c, struct limit_sum *ret);

/* Of one server: of all DSNs that lead there, whatever their keys. */
struct limit_server {
	char name[DSN_LABEL_SIZE]; /* proto/dsn.h: there is no key in it */
	uint64_t limited_ns;	   /* it takes nothing for so long yet */
	struct limit_sum sum;
	int64_t clock_ahead_s; /* of ours: what the last answers said */
	uint64_t delivered_ns; /* a chunk last, by clock_mono_ns; 0: none yet */
};
/* Returns how many of ret there are, each of another name. */
size_t limit_servers(const struct children *c, struct limit_server ret[SHIPS_MAX]);

#endif
