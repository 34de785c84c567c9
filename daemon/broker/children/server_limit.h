/*
 * Stops the sampling for a DSN while its server takes no profiles: while a rate limit of the server
 * lasts (MSG_LIMITED), or while the server refuses the DSN (MSG_DENIED). So no thread is stopped
 * for samples that could not be sent. The time without sampling is called a hold. During a hold no
 * run of the profiler makes chunks for that DSN: instances_check() stops the runs, and starts new
 * ones after the hold. Recordings (control/recordings.h) go on.
 *
 * has_files, an argument of several functions: chunks are also written to files (--output). If
 * true, there are no holds, because the files still need samples.
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
 * Handles MSG_LIMITED: the ship's server takes no profiles until until_ns, by clock_boot_ns(). This
 * replaces the time of the last message, which may have been later. Logs a line if until_ns is in
 * the future. Returns 0, or -EPROTO if until_ns is more than RATE_LIMIT_MAX_S seconds from now.
 */
must_check int server_limit_set(struct ship *s, uint64_t until_ns, bool has_files);

/* The advice to a user whose DSN is refused, in the log and in doctor (control/inspect.h). */
#define LIMIT_DENIAL_ADVICE \
	"check that the project's settings have this DSN and that its key is enabled"
/*
 * Handles MSG_DENIED: the ship's server refuses the DSN, or accepts it again (status 0). Logs a
 * line if the status or the reason has changed. Returns 0, or -EPROTO if the message is invalid.
 */
must_check int server_limit_deny(struct ship *s, const struct msg_denied *m, bool has_files);

/* Call it before the ship is freed: keeps the sums of its holds, for server_limit_sum(). */
void server_limit_add_gone(struct children *c, const struct ship *s);

/*
 * Begins and ends the holds. Called at every turn; does nothing unless state_is_sampling(). The
 * rate of holds is limited, because capture detaches from all targets of the DSN for each hold: a
 * ship may have six holds in a row and one more every 10 s. A hold beyond this rate lasts until the
 * rate permits it, even if the server takes profiles again earlier. Example: if the server limits
 * the DSN seven times within a moment, the seventh hold lasts about 10 s.
 */
void server_limit_check(struct children *c, bool has_files);

/*
 * Returns true if nothing is to be sampled for this ship now. s may be NULL (no ship yet):
 * false.
 */
bool server_limit_stops_sampling(const struct ship *s);

/* Totals since the broker started, of all DSNs. */
struct server_limit_sum {
	uint64_t holds;	  /* number of holds */
	uint64_t held_ns; /* length of all holds together */
	/*
	 * The latest end of a rate limit of the DSNs with a hold, by clock_boot_ns(): in the past
	 * if the hold lasts longer. 0: there is none.
	 */
	uint64_t until_ns;
	bool is_held; /* one of the DSNs has a hold at present */
};
/*
 * Sums the holds of all DSNs, those of freed ships included. A hold that goes on counts up to now
 * or, once the broker has ended all sampling, up to that moment.
 */
void server_limit_sum(const struct children *c, struct server_limit_sum *ret);

/* Totals of the ships whose DSNs have the same server and project. */
struct limited_server {
	char name[DSN_LABEL_SIZE]; /* server and project, by dsn_label(): without the key */
	uint64_t limited_ns;	   /* how long the present rate limit still lasts; 0: no limit */
	struct server_limit_sum sum;
	int64_t clock_ahead_s; /* how far the server's clock is ahead of this host's */
	uint64_t delivered_ns; /* when the server last took a chunk, by clock_mono_ns(); 0: never */
	/*
	 * The MSG_DENIED of a ship whose DSN the server refuses, valid until children_sweep();
	 * NULL: the server refuses no DSN.
	 */
	const struct msg_denied *denial;
};
/*
 * Writes one entry for each server and project that a ship sends to. Ships without a DSN and the
 * ship of Spotlight have no entry. Returns the number of entries.
 */
size_t server_limit_servers(const struct children *c, struct limited_server ret[SHIPS_MAX]);

#endif
