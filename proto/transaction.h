/*
 * Writes a transaction for a profile: the payload of a transaction item. A transaction is sent with
 * each V1 profile (profile_v1.h). It is also sent with each chunk for Spotlight, Sentry's viewer
 * for developers, which shows a chunk only below a transaction that refers to it.
 *
 * Source: Sentry's event payloads, "Transaction Payloads"; profiles specification 2.5.0.
 */
#ifndef PROTO_TRANSACTION_H
#define PROTO_TRANSACTION_H

#include <stdio.h>

#include "proto/profile.h"

#define TRANSACTION_SPAN_ID_SIZE 17 /* 16 hex digits and the NUL */

struct transaction {
	/*
	 * The profile, which has passed profile_check(). Its chunk_id becomes the event_id of the
	 * transaction, and must be the event_id of the envelope, too.
	 */
	const struct profile *profile;
	const char *name;
	/* 32 and 16 hex digits. The caller chooses them. */
	char trace_id[PROFILE_ID_SIZE];
	char span_id[TRANSACTION_SPAN_ID_SIZE];
	uint32_t tid;	 /* the active thread of the transaction; it must have samples */
	uint64_t end_us; /* Unix time of the end; the start is the first sample's time */
	bool of_chunk;	 /* the profile is a chunk: write contexts.profile with the profiler_id */
};

/*
 * Writes the payload, compact JSON without a newline, and flushes out. Returns 0, -EINVAL if a text
 * is not UTF-8, -ENOMEM, or the negative errno of writing (-EIO if errno is not set).
 */
int transaction_write(const struct transaction *t, FILE *out) __attribute__((warn_unused_result));

/*
 * Finds the thread that ran longest or, if no thread ran, the thread of the first sample. A thread
 * ran from one of its samples to the next if the first of the two has a stack and the state
 * PROFILE_RUNNING. p must have passed profile_check(). Returns 0 or -ENOMEM.
 */
int transaction_busiest(const struct profile *p, uint32_t *ret_tid)
	__attribute__((warn_unused_result));

#endif
