/*
 * The V1 sample format, deprecated: a profile that belongs to a transaction,
 * the two sent in one envelope.
 * Source: Sentry's profiles specification 2.5.0, "V1 Sample Format", and what
 * the server really does with it (docs/FORMATS.md).
 */
#ifndef PROTO_PROFILE_V1_H
#define PROTO_PROFILE_V1_H

#include <stdio.h>

#include "proto/profile.h"
#include "proto/transaction.h"

/* The server's limit; what is later by a moment is said to be then. */
#define PROFILE_V1_MAX_S 30

struct profile_v1 {
	/*
	 * Passed profile_check; its chunk_id is the transaction's event_id,
	 * and has to be the envelope's, its profiler_id the profile's.
	 */
	const struct profile *profile;
	const char *name; /* of the transaction */
	char trace_id[PROFILE_ID_SIZE];
	char span_id[TRANSACTION_SPAN_ID_SIZE];
	uint32_t tid;		  /* of the active thread: one that has samples */
	const char *architecture; /* as uname -m says it, */
	const char *os_name;	  /* -s, */
	const char *os_version;	  /* and -r */
};

/*
 * The two payloads, each a line of compact JSON without its end. They return 0,
 * -EINVAL if a text is not UTF-8 or a time is after the year 9999, -ENOMEM, or
 * the stream's errno.
 */
int profile_v1_transaction(const struct profile_v1 *v, FILE *out)
	__attribute__((warn_unused_result));
int profile_v1_write(const struct profile_v1 *v, FILE *out) __attribute__((warn_unused_result));

#endif
