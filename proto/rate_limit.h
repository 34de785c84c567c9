/*
 * Rate limits of the server: until when it accepts no data of a category. ship updates them by each
 * answer and checks them before each request; the broker stops sampling for a limited server.
 *
 * A limit is a deadline for a category. A new limit never shortens an old one. Deadlines and now_ns
 * are nanoseconds of one clock, which the caller chooses. It must go on while the machine sleeps
 * (CLOCK_BOOTTIME), because the server's clock does.
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
	 * "profile_chunk" and "profile_duration": Relay, the server's front end, applies both to
	 * chunks of programs on servers (DataCategory in relay-base-schema of getsentry/relay).
	 * Categories that end in _ui are for browsers and phones, and are ignored.
	 */
	RATE_LIMIT_PROFILE_CHUNK,
	RATE_LIMIT_PROFILE,	/* V1 profiles */
	RATE_LIMIT_TRANSACTION, /* the transaction of a V1 profile */
	RATE_LIMIT_SPAN,	/* that transaction counts as a span, too */
	RATE_LIMIT_CATEGORY_N
};

/* Longer limits are cut to this, so that a server's mistake has an end. */
#define RATE_LIMIT_MAX_S (24 * 60 * 60)
/* The limit after an answer with status 429 (too many requests) that names no future time. */
#define RATE_LIMIT_DEFAULT_S 60

struct rate_limit {
	uint64_t until_ns[RATE_LIMIT_CATEGORY_N]; /* 0: no limit so far */
};

/* The status of an answer, and the headers that can set limits. */
struct rate_limit_answer {
	int status;
	const char *limits;	 /* X-Sentry-Rate-Limits, or NULL */
	const char *retry_after; /* Retry-After, or NULL */
	int64_t retry_date_s;	 /* Retry-After as Unix time, if it is a date; else 0 */
};

/* Initialises r without limits. */
void rate_limit_init(struct rate_limit *r);

/*
 * Updates the limits by an answer of any status. unix_s: the Unix time with which retry_date_s is
 * compared. It is the answer's Date header, because retry_date_s is by the server's clock, too; if
 * there is none, the time of this machine.
 *
 * The format of limits is "secs:category;category:scope:reason:namespaces, ...". Seconds may have a
 * fraction and are rounded up. An empty list of categories means all. Malformed limits are ignored.
 * A limit that names only unknown categories is well-formed, and has no effect.
 *
 * If limits is NULL or has no well-formed limit, an answer with status 429 sets a limit on
 * RATE_LIMIT_ALL. Its length is the first of these that exists:
 * - the seconds in retry_after, if it is a number;
 * - the time until retry_date_s, if that is in the future;
 * - RATE_LIMIT_DEFAULT_S.
 */
void rate_limit_update(struct rate_limit *r, const struct rate_limit_answer *a, uint64_t now_ns,
		       int64_t unix_s);

/* Sets a limit on the category until until_ns, unless a later deadline is set. */
void rate_limit_extend(struct rate_limit *r, enum rate_limit_category category, uint64_t until_ns);

/* Returns the later deadline of the category and of RATE_LIMIT_ALL; 0: no limit so far. */
uint64_t rate_limit_until(const struct rate_limit *r, enum rate_limit_category category);

/* Returns true if a limit on the category, or on RATE_LIMIT_ALL, ends after now_ns. */
bool rate_limit_active(const struct rate_limit *r, enum rate_limit_category category,
		       uint64_t now_ns);

#endif
