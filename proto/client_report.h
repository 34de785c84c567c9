/*
 * Client reports: counts, by reason and category, of envelopes that were lost before they reached
 * the server. ship sends a report with an envelope or alone (lib/ship/reports.h), so that the
 * server's statistics are complete.
 *
 * Source: Sentry's SDK development documentation, "Client Reports". The payload:
 *
 *     {"timestamp":1767323045,"discarded_events":[{"reason":"send_error",
 *     "category":"profile_chunk","quantity":3}]}
 *
 * Not counted: envelopes that arrived or that will be sent again, envelopes that the server
 * answered with 429 (the server counts those), and lost reports.
 */
#ifndef PROTO_CLIENT_REPORT_H
#define PROTO_CLIENT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/envelope.h"

enum client_report_reason {
	CLIENT_REPORT_QUEUE_OVERFLOW,	  /* dropped from memory to make room */
	CLIENT_REPORT_CACHE_OVERFLOW,	  /* dropped from the spool */
	CLIENT_REPORT_RATELIMIT_BACKOFF,  /* not sent because of a rate limit */
	CLIENT_REPORT_NETWORK_ERROR,	  /* dropped without an answer of the server */
	CLIENT_REPORT_SEND_ERROR,	  /* refused by the server */
	CLIENT_REPORT_INSUFFICIENT_DATA,  /* no thread has two samples with a stack */
	CLIENT_REPORT_BACKPRESSURE,	  /* dropped because too many envelopes are in flight */
	CLIENT_REPORT_INTERNAL_SDK_ERROR, /* every other loss: no memory, a file that cannot be read
					   */
	CLIENT_REPORT_REASON_N
};

/*
 * The numbers of lost envelopes. An envelope of the kind ENVELOPE_V1 is in three categories of the
 * payload: transaction, profile, and span, because a transaction is a span, too.
 */
struct client_report {
	uint64_t quantity[ENVELOPE_KIND_N][CLIENT_REPORT_REASON_N];
};

/*
 * Size of the longest payload, with the NUL: all reasons in all categories with the largest
 * numbers. Sentry's limit is 4 KiB.
 */
#define CLIENT_REPORT_SIZE 3072

/* Returns true if all counts are zero: there is nothing to report. */
bool client_report_is_empty(const struct client_report *r);

/*
 * Writes the payload of a client_report item, followed by a NUL, and its length without the NUL to
 * *ret_len. unix_s: Unix time of the report.
 */
void client_report_json(const struct client_report *r, int64_t unix_s, char ret[CLIENT_REPORT_SIZE],
			size_t *ret_len);

#endif
