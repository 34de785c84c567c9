/*
 * How long to wait between two envelopes of the spool. A server that comes back
 * meets all hosts at once, each with what it could not send; it is to see a
 * small multiple of its usual load, not as much as the hosts can send.
 *
 * What waits tells how often the host makes one. It goes out PACE_TIMES as
 * often, by chance a little earlier or later, beside those that are new: an
 * hour's in a quarter of an hour, a day's in six hours. None of these comes to
 * be too old by that: the next one's turn comes sooner than it was made after.
 */
#ifndef LIB_SHIP_PACE_H
#define LIB_SHIP_PACE_H

#include <stdint.h>

#include "lib/base/util.h"

#define PACE_TIMES 4

/* What Sentry's SDKs leave between two of them; for a host with many. */
#define PACE_LEAST_NS (100 * NS_PER_MS)

/* The longest chunk. What lies further apart is of several outages. */
#define PACE_EACH_MAX_NS (60 * NS_PER_SEC)

/*
 * n wait, and between the oldest and the newest span_ns have passed. random: 64
 * bits. Half to one and a half of what it is in the mean, PACE_LEAST_NS at
 * least.
 */
uint64_t pace_pause_ns(size_t n, uint64_t span_ns, uint64_t random);

#endif
