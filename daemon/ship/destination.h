/*
 * The server that a ship sends to, and what ship knows about it: rate limits, denial, backoff,
 * clock difference, and the client reports that are due. outbox.c reads this state before each
 * request and passes each answer to destination_handle_answer().
 *
 * - Denial: the server refuses the DSN with status 401 or 403. Only probes are sent to it: requests
 *   without an envelope that show whether the server accepts the DSN again.
 * - Backoff: the time to wait after a failed request before the next one.
 * - Client report: Sentry's message with the numbers of envelopes that were lost.
 *
 * A ship has one destination: a Sentry server, a Spotlight, or none. Spotlight is Sentry's viewer
 * on the developer's own machine. The dsn of a Spotlight is a URL without a key (dsn_parse_url). A
 * Spotlight has no rate limits and no denial, and its backoff is 1 s to 60 s, without jitter.
 *
 * Times in ns are by clock_boot_ns(). The log has a line when the server stops answering, and one
 * when it answers again.
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
	/*
	 * No status; 407 or 511, which come from a proxy or a network that requires a login; or,
	 * with retry_5xx, 502 to 504: send it again.
	 */
	OUTCOME_NO_ANSWER,
	OUTCOME_ACCEPTED,     /* 2xx */
	OUTCOME_RATE_LIMITED, /* 429: never sent again, since the server may have kept it */
	OUTCOME_DENIED,	      /* 401 or 403: send it again once a probe is accepted */
	OUTCOME_REFUSED,      /* others; of Spotlight also 401, 403 and 429: never sent again */
};

/* Size of destination.silence, in bytes with the NUL. libcurl's texts have up to 256. */
#define DESTINATION_REASON_MAX 300

struct destination {
	struct dsn dsn;
	bool has_dsn; /* false: nothing is sent */
	/* Settings of MSG_DSN. The caller sets them before destination_set_dsn(). */
	bool retry_5xx;	 /* the HTTP statuses 502 to 504 count as no answer */
	bool no_reports; /* no client reports are sent */
	bool is_spotlight;
	enum compression compression;
	enum envelope_kind kind; /* the kind of envelope that the daemon makes at present */
	/* State of the server. */
	struct rate_limit limits;
	int64_t request_start_s; /* Unix time at which the last request began */
	int64_t clock_ahead_s;	 /* the server's clock minus this machine's; 0: about equal */
	struct retry retry;
	/* Why the server did not answer the last request, as logged; "": it answered. */
	char silence[DESTINATION_REASON_MAX];
	int silence_status; /* HTTP status with which silence was logged; 0: no status came */
	/* 401 or 403 during a denial; 0: no denial. denial_text: of the server, without the key. */
	int denial;
	char denial_text[MSG_TEXT_MAX];
	/* A probe has ended the denial, and the server has answered no envelope since. */
	bool on_trial;
	struct reports reports;
	struct reports_item item; /* the last report that destination_report() has made */
};

/* Initialises a destination without a server. */
void destination_init(struct destination *d);

/*
 * Sets the server, and copies dsn; dsn NULL: no server. All log lines name the server from now on.
 * Resets the rate limits, the backoff, the denial and the clock difference, before it applies the
 * last two arguments. Losses stay counted for the next report.
 *
 * The last two arguments are the state of the server that an earlier ship has reported (MSG_DSN).
 * limited_until_ns: the end of the rate limit on envelopes of d->kind; 0: no limit. denial: the
 * status of the denial, 401 or 403; 0: no denial.
 */
void destination_set_dsn(struct destination *d, const struct dsn *dsn, uint64_t limited_until_ns,
			 int denial);

/* Records that a request begins now. Call it before each request: clock_ahead_s needs the time. */
void destination_note_request(struct destination *d);

/*
 * Evaluates the answer to a request: updates rate limits, backoff, clock difference and denial, and
 * logs changes. If the request carried the report of destination_report(), records whether that
 * report arrived. Returns what the answer means for the request's envelope. a->status 0: the server
 * did not answer. is_extra: the request had no envelope (a report or a probe).
 *
 * A denial ends with the first answer that is neither 401, 403 nor OUTCOME_NO_ANSWER. Example of a
 * server that accepts probes and denies envelopes:
 *	403 to an envelope		OUTCOME_DENIED; the denial begins
 *	200 to a probe			the denial ends
 *	403 to the next envelope	OUTCOME_REFUSED; a denial begins, with a longer backoff
 * Reason for OUTCOME_REFUSED: a firewall may refuse the content of this one envelope, which would
 * hold back all others if it were sent again.
 */
enum outcome destination_handle_answer(struct destination *d, const struct transport_answer *a,
				       bool is_extra);

/*
 * Makes the client report that the next request carries. due_ns is the time from which a report may
 * be sent. The caller passes
 * - for a request with an envelope: reports_with_envelope_ns(&d->reports), which is UINT64_MAX if
 *   there is nothing to report;
 * - for a request without an envelope: 0. Then reports_any(&d->reports) must be true.
 *
 * Returns NULL if due_ns is in the future, no_reports is set, or memory is short. The report
 * belongs to d and is valid until the next call. After the request call
 * destination_handle_answer(). If no request is sent, call reports_failed(&d->reports).
 */
const struct reports_item *destination_report(struct destination *d, uint64_t due_ns);

/*
 * Returns the end of the server's rate limit on envelopes of this kind. The end may be in the past;
 * 0: there was no limit.
 */
uint64_t destination_limit_ns(const struct destination *d, enum envelope_kind kind);

/* Returns whether the backoff lasts beyond time_ns. */
static inline bool destination_backs_off(const struct destination *d, uint64_t time_ns)
{
	return retry_is_waiting(&d->retry, time_ns);
}

#endif
