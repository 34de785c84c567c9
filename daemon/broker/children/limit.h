/*
 * The rate limits of servers. While a server takes no profiles, no thread is stopped for samples
 * that could not be sent: the runs of the profiler for that DSN are stopped, and others are
 * started when the limit is over (instances_check).
 *
 * If chunks are also written to files (has_files: --output), sampling goes on.
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
 * Handles MSG_LIMITED: the ship's server takes no profiles until until_ns, by clock_boot_ns().
 * The time may be earlier than that of the message before. Returns 0, or -EPROTO if the limit is
 * longer than RATELIMIT_MAX_S.
 */
must_check int limit_take(struct ship *s, uint64_t until_ns, bool has_files);

/* The ship is about to be freed: adds its pauses to c->limits_gone. */
void limit_ship_gone(struct children *c, const struct ship *s);

/* To be called at every turn: begins and ends the pauses. */
void limit_check(struct children *c, bool has_files);

/*
 * Returns true if nothing is to be sampled for this ship now. s may be NULL (no ship yet):
 * false.
 */
bool limit_holds(const struct ship *s);

/* Totals over the whole run, of all DSNs. */
struct limit_sum {
	uint64_t pauses;
	uint64_t paused_ns;
	uint64_t until_ns; /* end of the longest limit that holds, by clock_boot_ns(); 0: none */
};
/* Sums the limits of all DSNs, until now or the end of the sampling. */
void limit_sum(const struct children *c, struct limit_sum *ret);

/* Totals of one server, that is of all DSNs with this server, whatever their keys. */
struct limit_server {
	char name[DSN_LABEL_SIZE]; /* of proto/dsn.h, without the key */
	uint64_t limited_ns;	   /* for how much longer it takes no profiles; 0: no limit */
	struct limit_sum sum;
	int64_t clock_ahead_s; /* how far its clock is ahead of this host's, by its last answers */
	uint64_t delivered_ns; /* when it last took a chunk, by clock_mono_ns(); 0: not yet */
};
/* Fills in ret, one entry for each server. Returns the number of entries. */
size_t limit_servers(const struct children *c, struct limit_server ret[SHIPS_MAX]);

#endif
