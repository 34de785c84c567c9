/*
 * The rate limits of servers, and their refusals of a DSN (MSG_DENIED), which act as a limit
 * without an end. While a server takes no profiles, no thread is stopped for samples that could not
 * be sent: the runs of the profiler for that DSN are stopped, and others are started when the limit
 * is over (instances_check). Such a time is called a hold here; shutdown.h is about SIGTSTP.
 *
 * If chunks are also written to files (has_files: --output), sampling goes on, and there are no
 * holds.
 */
#ifndef DAEMON_BROKER_CHILDREN_SERVER_LIMIT_H
#define DAEMON_BROKER_CHILDREN_SERVER_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/children/child.h"
#include "lib/base/util.h"
#include "proto/dsn.h"

/*
 * Handles MSG_LIMITED: the ship's server takes no profiles until until_ns, by clock_boot_ns().
 * The time may be earlier than that of the message before. Returns 0, or -EPROTO if the limit is
 * longer than RATE_LIMIT_MAX_S.
 */
must_check int server_limit_set(struct ship *s, uint64_t until_ns, bool has_files);

/* The advice to a user whose DSN is refused, also of doctor (daemon/broker/control/inspect.h). */
#define LIMIT_DENIAL_ADVICE \
	"check that the project's settings have this DSN and that its key is enabled"
/*
 * Handles MSG_DENIED: the ship's server refuses the DSN, or no longer. Logs a line if the reason
 * has changed. Returns 0, or -EPROTO if the message is invalid.
 */
must_check int server_limit_deny(struct ship *s, const struct msg_denied *m, bool has_files);

/* The ship is about to be freed: adds its holds to c->limits_gone. */
void server_limit_add_gone(struct children *c, const struct ship *s);

/* Begins and ends the holds. Called at every turn. */
void server_limit_check(struct children *c, bool has_files);

/*
 * Returns true if nothing is to be sampled for this ship now. s may be NULL (no ship yet):
 * false.
 */
bool server_limit_stops_sampling(const struct ship *s);

/* Totals since the broker started, of all DSNs. */
struct server_limit_sum {
	uint64_t holds;
	uint64_t held_ns;
	/* When the last of the present rate limits ends, by clock_boot_ns(); 0: none. */
	uint64_t until_ns;
	bool is_held; /* at present, by a rate limit or a refusal */
};
/*
 * Sums the holds of all DSNs, those of freed ships included. A hold that goes on counts up to
 * now, or up to the end of the sampling if that has passed.
 */
void server_limit_sum(const struct children *c, struct server_limit_sum *ret);

/* Totals of one server: of the ships of all DSNs with this server, without freed ships. */
struct limited_server {
	char name[DSN_LABEL_SIZE]; /* of proto/dsn.h, without the key */
	uint64_t limited_ns;	   /* for how much longer it takes no profiles; 0: no limit */
	struct server_limit_sum sum;
	int64_t clock_ahead_s; /* how far its clock is ahead of this host's, by its last answers */
	uint64_t delivered_ns; /* when it last took a chunk, by clock_mono_ns(); 0: not yet */
	const struct msg_denied *denial; /* of one of the ships; NULL: it refuses no DSN */
};
/*
 * Writes one entry for each server. Ships without a DSN and that of Spotlight have none. Returns
 * the number of entries.
 */
size_t server_limit_servers(const struct children *c, struct limited_server ret[SHIPS_MAX]);

#endif
