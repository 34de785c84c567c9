/*
 * Writes a profile in Sentry's V1 sample format, which is deprecated: a transaction and the
 * profile that belongs to it, two payloads that are sent in one envelope.
 *
 * Source: Sentry's profiles specification 2.5.0, "V1 Sample Format"; docs/FORMATS.md says where
 * the server differs from it.
 */
#ifndef PROTO_PROFILE_V1_H
#define PROTO_PROFILE_V1_H

#include <stdio.h>

#include "proto/profile.h"
#include "proto/transaction.h"

/*
 * The server's limit on the duration of a V1 profile. A sample that comes later is written as if it
 * came exactly this long after the first sample.
 */
#define PROFILE_V1_MAX_S 30

struct profile_v1 {
	/*
	 * The profile, which has passed profile_check(). Its chunk_id becomes the event_id of the
	 * transaction, and must be the event_id of the envelope, too. Its profiler_id becomes the
	 * event_id of the profile.
	 */
	const struct profile *profile;
	const char *name; /* of the transaction */
	/* 32 and 16 hex digits. The caller chooses them. */
	char trace_id[PROFILE_ID_SIZE];
	char span_id[TRANSACTION_SPAN_ID_SIZE];
	uint32_t tid;		  /* the active thread of the transaction; it must have samples */
	const char *architecture; /* as by uname -m */
	const char *os_name;	  /* as by uname -s */
	const char *os_version;	  /* as by uname -r */
};

/*
 * profile_v1_transaction() writes the payload of the transaction, profile_v1_write() that of the
 * profile. Each is compact JSON without a newline. Both flush the stream. They return 0; -EINVAL if
 * a text is not UTF-8 or a time is after the year 9999; -ENOMEM; or the negative errno of writing
 * (-EIO if errno is not set).
 */
int profile_v1_transaction(const struct profile_v1 *v, FILE *out)
	__attribute__((warn_unused_result));
int profile_v1_write(const struct profile_v1 *v, FILE *out) __attribute__((warn_unused_result));

#endif
