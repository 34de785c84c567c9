/*
 * Where envelopes go, and what is known of the server there: what it does not
 * want for a while, when it is tried again if it does not answer, and what it
 * is to be told of losses.
 */
#ifndef DAEMON_SHIP_DESTINATION_H
#define DAEMON_SHIP_DESTINATION_H

#include <stdbool.h>

#include "daemon/ship/verdict.h"
#include "lib/ship/backoff.h"
#include "lib/ship/reports.h"
#include "lib/ship/transport.h"
#include "proto/dsn.h"
#include "proto/ratelimit.h"

/* Times are by clock_boot_ns. */
struct destination {
	struct dsn dsn;
	bool has_dsn;	/* else nothing is sent */
	bool retry_5xx; /* 502 to 504 are no answer */
	bool is_silent; /* it is told of no losses */
	/*
	 * dsn is a URL (dsn_parse_url). Its limits are not kept, an envelope
	 * that it did not answer is sent once more, and it is tried again after
	 * 1 s to 60 s.
	 */
	bool is_spotlight;
	enum compression compression;
	enum envelope_kind kind; /* that is made: its limits concern others */
	struct ratelimit limits;
	int64_t posted_s;      /* when the last request began, seconds since 1970 */
	int64_t clock_ahead_s; /* the server's clock, of ours; 0: about equal */
	bool clock_told;
	struct backoff backoff;
	struct reports reports;
	struct reports_item item; /* the last that was made */
};

/* Nowhere. */
void destination_init(struct destination *d);

/*
 * Another one; dsn NULL: nowhere. The log says which. Limits are lifted, but
 * for one on what is made that is known already, 0: none. What is to be told
 * stays.
 */
void destination_set(struct destination *d, const struct dsn *dsn, uint64_t limited_until_ns);

/* A request is about to be posted. */
void destination_posts(struct destination *d);

/*
 * What came of a request, with a report or without one: keeps what the answer
 * says of the server, and says in the log what it says to a person.
 */
enum verdict destination_take(struct destination *d, const struct transport_answer *a);

/*
 * A report of what was lost, to go with a request that destination_take or
 * reports_failed follows; NULL: none is due before due_ns. Valid until the
 * next.
 */
const struct reports_item *destination_report(struct destination *d, uint64_t due_ns);

/* Until when the server takes none of that kind; 0: there is no limit. */
uint64_t destination_limit_ns(const struct destination *d, enum envelope_kind kind);

/* Not to be tried at that time: it did not answer. */
static inline bool destination_rests(const struct destination *d, uint64_t time_ns)
{
	return backoff_holds(&d->backoff, time_ns);
}

#endif
