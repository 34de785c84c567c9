/*
 * What a client tells the server of data that it did not send: how much, of
 * which category, and why.
 * Source: Sentry's SDK development documentation, "Client Reports".
 *
 *     {"timestamp":1767323045,"discarded_events":[{"reason":"send_error",
 *     "category":"profile_chunk","quantity":3}]}
 *
 * Nothing is told of what arrived, what is still to be sent again, what the
 * server refused by 429 (it counts that itself), and of lost reports.
 */
#ifndef PROTO_CLIENT_REPORT_H
#define PROTO_CLIENT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/envelope.h"

enum client_report_reason {
	CLIENT_REPORT_QUEUE_OVERFLOW,	 /* newer ones took its place */
	CLIENT_REPORT_CACHE_OVERFLOW,	 /* the same, on the disk */
	CLIENT_REPORT_RATELIMIT_BACKOFF, /* not sent because of a limit */
	CLIENT_REPORT_NETWORK_ERROR,	 /* given up: there was no answer */
	CLIENT_REPORT_SEND_ERROR,	 /* refused by a status */
	CLIENT_REPORT_INSUFFICIENT_DATA, /* no thread with two samples */
	CLIENT_REPORT_BACKPRESSURE,	 /* there would be too many */
	CLIENT_REPORT_INTERNAL_SDK_ERROR,
	CLIENT_REPORT_REASON_N
};

/*
 * How many envelopes. One of V1 is told of in three categories: as a
 * transaction, as its profile, and as a span, which a transaction is, too.
 */
struct client_report {
	uint64_t quantity[ENVELOPE_KIND_N][CLIENT_REPORT_REASON_N];
};

/*
 * Sentry's limit is 4 KiB; all reasons in all categories with the largest
 * numbers take less than three. With the NUL.
 */
#define CLIENT_REPORT_SIZE 3072

bool client_report_is_empty(const struct client_report *r);

/*
 * Writes the payload of a client_report item, followed by a NUL, and its length
 * without the NUL to *ret_len. unix_s: when it was made.
 */
void client_report_json(const struct client_report *r, int64_t unix_s, char ret[CLIENT_REPORT_SIZE],
			size_t *ret_len);

#endif
