/*
 * Which categories of data the server does not want for now.
 *
 * Source: Sentry's SDK development documentation, "Rate Limiting". A limit is
 * a deadline per category; a new one never shortens an old one. The caller's
 * clock should be one that goes on while the machine sleeps (CLOCK_BOOTTIME):
 * the server's does.
 */
#ifndef PROTO_RATELIMIT_H
#define PROTO_RATELIMIT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The categories that anything here can be sent as; limits on others are of
 * no interest. RATELIMIT_ALL, which the server writes as an empty list, stands
 * beside the others and holds for each of them.
 */
enum ratelimit_category {
	RATELIMIT_ALL,
	/*
	 * "profile_chunk" and "profile_duration": Relay limits the chunks of a
	 * server by both (getsentry/relay: DataCategory in relay-base-schema,
	 * and in relay-server what removes the profile of a transaction whose
	 * profiler is limited). The categories that end in _ui are for browsers
	 * and phones: no limit of ours.
	 */
	RATELIMIT_PROFILE_CHUNK,
	RATELIMIT_PROFILE,     /* V1 profiles */
	RATELIMIT_TRANSACTION, /* V1: its transaction, and that one's spans */
	RATELIMIT_SPAN,
	RATELIMIT_CATEGORY_N
};

/* Longer limits are cut to this: a server's mistake must end some day. */
#define RATELIMIT_MAX_S (24 * 60 * 60)
/* For a 429 that says nothing else. */
#define RATELIMIT_DEFAULT_S 60

struct ratelimit {
	uint64_t until_ns[RATELIMIT_CATEGORY_N]; /* 0: never limited */
};

/* What an answer says about limits. */
struct ratelimit_answer {
	int status;
	const char *limits;	 /* X-Sentry-Rate-Limits, or NULL */
	const char *retry_after; /* Retry-After, or NULL */
	int64_t retry_date_s;	 /* that, if it is a date; else 0 */
};

void ratelimit_init(struct ratelimit *r);

/*
 * Takes an answer of any status. now_ns is the deadlines' clock, unix_s the
 * time of day, which a date in Retry-After is compared with.
 *
 * limits: "secs:category;category:scope:reason:namespaces, ...". Seconds may
 * have a fraction and are rounded up; no category means all; limits that are
 * malformed or name only categories that are not known here are ignored. If
 * limits has not one well-formed limit, a 429 limits everything: for the
 * seconds or until the date of retry_after, else for RATELIMIT_DEFAULT_S.
 */
void ratelimit_update(struct ratelimit *r, const struct ratelimit_answer *a, uint64_t now_ns,
		      int64_t unix_s);

/* The category is limited until then, as was known elsewhere. */
void ratelimit_extend(struct ratelimit *r, enum ratelimit_category category, uint64_t until_ns);

/* Until when category must not be sent, RATELIMIT_ALL included; 0: no limit. */
uint64_t ratelimit_until(const struct ratelimit *r, enum ratelimit_category category);

bool ratelimit_active(const struct ratelimit *r, enum ratelimit_category category, uint64_t now_ns);

#endif
