/*
 * When ship sends its next request after a server was unreachable: how long it waits before it
 * tries again (exponential backoff), and how long it pauses between two envelopes of the spool once
 * the server answers. Both are random, so that hosts that lost the server at the same moment do not
 * return at the same moment. docs/BENCHMARKS.md has figures for 10,000 hosts.
 *
 * Backoff: after the n-th failure in a row ship waits for a random time from 0 to RETRY_FIRST_NS *
 * 2^(n-1) ("full jitter"). Example: after the 4th failure it waits 0 to 8 s. The limit of the wait
 * is RETRY_MAX_NS, or RETRY_DENIED_MAX_NS for a server that refuses the key.
 *
 * Pause: ship sends the envelopes of the spool (spool.h) RETRY_DRAIN_TIMES times as often as the
 * host made them, beside the new ones. The mean interval between the waiting envelopes shows how
 * often the host made one. Example: 60 envelopes of an hour's outage are sent one every 15 s,
 * within 15 minutes. So a server that comes back sees a small multiple of its usual load, and no
 * envelope expires because of the pauses.
 *
 * Times are nanoseconds of the caller's clock. random: 64 random bits (random_number).
 */
#ifndef LIB_SHIP_RETRY_H
#define LIB_SHIP_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

#define RETRY_FIRST_NS (1 * NS_PER_SEC)
#define RETRY_MAX_NS   (300 * NS_PER_SEC)
/* For a server that refuses the key: it accepts no key before a person has done something. */
#define RETRY_DENIED_MAX_NS (3600 * NS_PER_SEC)

/* All zeros: nothing has failed. */
struct retry {
	uint32_t failures; /* in a row */
	uint64_t until_ns; /* time of the next try */
};

/*
 * Counts a failure and chooses the time of the next try. longest_ns is the limit of the wait:
 * RETRY_MAX_NS, or RETRY_DENIED_MAX_NS.
 */
void retry_failed(struct retry *r, uint64_t now_ns, uint64_t longest_ns, uint64_t random);
/*
 * As retry_failed() but without jitter, for a server that no other host uses: the n-th failure is
 * followed by a wait of RETRY_FIRST_NS * 2^(n-1), at most longest_ns.
 */
void retry_failed_without_jitter(struct retry *r, uint64_t now_ns, uint64_t longest_ns);
/* Resets the count of failures: the next request need not wait. */
void retry_succeeded(struct retry *r);

/* Returns whether the time of the next try is still ahead. */
static inline bool retry_is_waiting(const struct retry *r, uint64_t now_ns)
{
	return r->failures > 0 && now_ns < r->until_ns;
}

/* The spool is emptied this many times as fast as it was filled. */
#define RETRY_DRAIN_TIMES 4

/* The shortest pause, as between two cached envelopes in Sentry's SDKs. */
#define RETRY_PAUSE_MIN_NS (100 * NS_PER_MS)

/*
 * The longest mean interval, that of the longest chunk. A longer one counts as this: the envelopes
 * are from several outages, and the interval does not show how often the host makes one.
 */
#define RETRY_INTERVAL_MAX_NS (60 * NS_PER_SEC)

/*
 * Returns the pause before the next of n waiting envelopes. span_ns: the time between the oldest
 * and the newest. The mean pause is the mean interval, span_ns / (n - 1) and at most
 * RETRY_INTERVAL_MAX_NS, divided by RETRY_DRAIN_TIMES. Returns a random 50 to 150 % of the mean
 * pause, but at least RETRY_PAUSE_MIN_NS. With n below 2, returns RETRY_PAUSE_MIN_NS.
 */
uint64_t retry_pause_ns(size_t n, uint64_t span_ns, uint64_t random);

#endif
