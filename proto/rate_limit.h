/*
 * Rate limits of the server: until when it takes no data of a category. ship updates them by each
 * answer and asks before each request; the broker stops sampling for a limited server.
 *
 * A limit is a deadline for a category. A new limit never shortens an old one. Use a clock that
 * goes on while the machine sleeps (CLOCK_BOOTTIME), because the server's does.
 *
 * Source: Sentry's SDK development documentation, "Rate Limiting".
 */
#ifndef PROTO_RATE_LIMIT_H
#define PROTO_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The categories of what this program sends. Limits on other categories are ignored.
 * RATE_LIMIT_ALL, which the server writes as an empty list, holds for every category.
 */
enum rate_limit_category {
	RATE_LIMIT_ALL,
	/*
	 * "profile_chunk" and "profile_duration": Relay applies both to chunks of backends
	 * (getsentry/relay: DataCategory in relay-base-schema, and the code in relay-server that
	 * removes the profile of a transaction whose profiler is limited). Categories that end
	 * in _ui are for browsers and phones, and are ignored.
	 */
	RATE_LIMIT_PROFILE_CHUNK,
	RATE_LIMIT_PROFILE,	/* V1 profiles */
	RATE_LIMIT_TRANSACTION, /* the transaction of a V1 profile */
	RATE_LIMIT_SPAN,	/* that transaction counts as a span, too */
	RATE_LIMIT_CATEGORY_N
};

/* Longer limits are cut to this, so that a server's mistake ends some day. */
#define RATE_LIMIT_MAX_S (24 * 60 * 60)
/* The limit of a 429 without a time. */
#define RATE_LIMIT_DEFAULT_S 60

struct rate_limit {
	uint64_t until_ns[RATE_LIMIT_CATEGORY_N]; /* 0: no limit so far */
};

/* The status and headers of an answer that set limits. */
struct rate_limit_answer {
	int status;
	const char *limits;	 /* X-Sentry-Rate-Limits, or NULL */
	const char *retry_after; /* Retry-After, or NULL */
	int64_t retry_date_s;	 /* Retry-After as Unix time, if it is a date; else 0 */
};

/* No limits. */
void rate_limit_init(struct rate_limit *r);

/*
 * Updates the limits by an answer of any status. now_ns: time of the deadlines' clock; unix_s: Unix
 * time, with which a date in Retry-After is compared.
 *
 * The format of limits is "secs:category;category:scope:reason:namespaces, ...". Seconds may have a
 * fraction and are rounded up. An empty list of categories means all. Malformed limits, and limits
 * that name only unknown categories, are ignored. If limits has no well-formed limit, a 429
 * limits everything: for the seconds or until the date of retry_after, else for
 * RATE_LIMIT_DEFAULT_S.
 */
void rate_limit_update(struct rate_limit *r, const struct rate_limit_answer *a, uint64_t now_ns,
		       int64_t unix_s);

/* Sets a limit on the category, unless a longer one is set. */
void rate_limit_extend(struct rate_limit *r, enum rate_limit_category category, uint64_t until_ns);

/* Returns the end of the limit on the category, RATE_LIMIT_ALL included; 0: no limit. */
uint64_t rate_limit_until(const struct rate_limit *r, enum rate_limit_category category);

/* Returns whether the category is limited at now_ns. */
bool rate_limit_active(const struct rate_limit *r, enum rate_limit_category category,
		       uint64_t now_ns);

#endif
