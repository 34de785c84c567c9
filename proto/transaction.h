/*
 * A transaction that a profile belongs to: the payload of a transaction item.
 * Two profiles come with one: a V1 profile (proto/profile_v1.h), and a chunk
 * for Spotlight, which draws a chunk only below a transaction that refers to
 * it.
 * Source: Sentry's event payloads, "Transaction Payloads"; profiles
 * specification 2.5.0.
 */
#ifndef PROTO_TRANSACTION_H
#define PROTO_TRANSACTION_H

#include <stdio.h>

#include "proto/profile.h"

#define TRANSACTION_SPAN_ID_SIZE 17 /* 16 hex digits and the NUL */

struct transaction {
	/*
	 * Passed profile_check. Its chunk_id is the transaction's event_id,
	 * and has to be the envelope's.
	 */
	const struct profile *profile;
	const char *name;
	char trace_id[PROFILE_ID_SIZE];
	char span_id[TRANSACTION_SPAN_ID_SIZE];
	uint32_t tid;	 /* one that has samples */
	uint64_t end_us; /* Unix time; the start is the first sample's */
	bool of_chunk;	 /* contexts.profile has the profiler_id */
};

/*
 * Writes the payload, a line of compact JSON without its end, and flushes it.
 * Returns 0, -EINVAL if a text is not UTF-8, -ENOMEM, or the stream's errno.
 */
int transaction_write(const struct transaction *t, FILE *out) __attribute__((warn_unused_result));

/*
 * The thread of p that ran longest: a sample counts until the thread's next
 * one, unless it waits or has no stack. Where no thread ran, the first
 * sample's. p has passed profile_check. Returns 0 or -ENOMEM.
 */
int transaction_busiest(const struct profile *p, uint32_t *ret_tid)
	__attribute__((warn_unused_result));

#endif
