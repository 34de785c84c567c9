/*
 * The server that a ship sends to, and the state of this server as far as ship knows it: rate
 * limits, a denial, the backoff after a failure, the difference of the clocks, and the client
 * reports that are due. outbox.c reads this state before each request and passes each answer to
 * destination_handle_answer().
 *
 * A ship has one destination: a Sentry server, a Spotlight, or none. Spotlight is Sentry's
 * viewer on the developer's own machine; its dsn is a URL without a key
 * (dsn_parse_url). For a Spotlight rate limits are ignored, and the backoff is 1 s to 60 s without
 * jitter; outbox.c sends an envelope to it twice at most.
 *
 * Times are by clock_boot_ns(), unless the name says otherwise. Errors are logged, once each.
 */
#ifndef DAEMON_SHIP_DESTINATION_H
#define DAEMON_SHIP_DESTINATION_H

#include <stdbool.h>

#include "daemon/msg/msg.h"
#include "lib/ship/reports.h"
#include "lib/ship/retry.h"
#include "lib/ship/transport.h"
#include "proto/dsn.h"
#include "proto/rate_limit.h"

/* What the result of a request means for the envelope that it carried. */
enum outcome {
	OUTCOME_NO_ANSWER,    /* send it again */
	OUTCOME_ACCEPTED,     /* 2xx */
	OUTCOME_RATE_LIMITED, /* 429: the server may have it; never sent again */
	OUTCOME_DENIED,	      /* 401 or 403: send it again once a probe is accepted */
	OUTCOME_REFUSED,      /* any other status: never sent again */
};

/* Bytes of the reason for which there is no answer; libcurl's texts have up to 256. */
#define DESTINATION_REASON_MAX 300

struct destination {
	struct dsn dsn;
	bool has_dsn; /* false: nothing is sent */
	/* Settings of MSG_DSN. */
	bool retry_5xx;	 /* the statuses 502 to 504 count as no answer */
	bool no_reports; /* no client reports are sent */
	bool is_spotlight;
	enum compression compression;
	enum envelope_kind kind; /* of the envelopes that the daemon makes now */
	/* State of the server. */
	struct rate_limit limits;
	int64_t request_start_s; /* Unix time at which the last request began */
	int64_t clock_ahead_s;	 /* the server's clock minus ours; 0: about equal */
	struct retry retry;
	/* Why it did not answer the last time, as logged; "": it answered. */
	char silence[DESTINATION_REASON_MAX];
	int silence_status; /* the HTTP status that counts as no answer, or 0 */
	/*
	 * 401 or 403: the server refuses the DSN, so that nothing but probes is sent to it; 0: it
	 * does not. The text is what it says about that.
	 */
	int denial;
	char denial_text[MSG_TEXT_MAX];
	/* A probe ended the denial, and no envelope has been answered since. */
	bool on_trial;
	struct reports reports;
	struct reports_item item; /* the last report that destination_report() has made */
};

/* Initialises a destination without a server. */
void destination_init(struct destination *d);

/*
 * Sets the server; dsn NULL: no server. All log lines name the server from now on. Resets rate
 * limits, backoff and clock difference; losses that were not reported yet stay.
 * limited_until_ns: the end of a rate limit on envelopes of d->kind, and denial: the status of a
 * denial, which an earlier ship has reported to the broker; 0: none.
 */
void destination_set_dsn(struct destination *d, const struct dsn *dsn, uint64_t limited_until_ns,
			 int denial);

/* Records the time at which a request begins. */
void destination_note_request(struct destination *d);

/*
 * Evaluates the answer to a request, or its absence: updates rate limits, backoff, clock
 * difference, denial and the report that the request carried, and logs changes. Returns what the
 * answer means for the envelope. is_extra: the request had no envelope (enum outbox_extra).
 *
 * During a denial the caller sends nothing but probes, and any answer but 401 and 403 ends it. If
 * the next envelope is denied all the same, it counts as refused, and the backoff goes on where it
 * was: a firewall may refuse the content of this envelope, which must not hold back all others.
 */
enum outcome destination_handle_answer(struct destination *d, const struct transport_answer *a,
				       bool is_extra);

/*
 * Makes the client report for the next request. due_ns: reports_with_envelope_ns(&d->reports), for
 * a request with an envelope; or 0, after reports_any(&d->reports) has returned true: a report now.
 * Returns NULL if due_ns is in the future, reports are off, or memory is short. The report is valid
 * until the next call. Then call destination_handle_answer() with the answer, or reports_failed()
 * if no request is sent.
 */
const struct reports_item *destination_report(struct destination *d, uint64_t due_ns);

/* Returns the end of the server's rate limit on envelopes of this kind; 0: none. */
uint64_t destination_limit_ns(const struct destination *d, enum envelope_kind kind);

/* Returns whether the backoff after a failure lasts beyond time_ns. */
static inline bool destination_backs_off(const struct destination *d, uint64_t time_ns)
{
	return retry_is_waiting(&d->retry, time_ns);
}

#endif
