/*
 * Counts lost envelopes until a client report (proto/client_report.h) has told the server of them.
 * The next report can go with an envelope from 30 s after the last reports_take() on, and alone
 * from 60 s on, whether the last report arrived or not. The caller keeps to these times:
 * reports_take() does not check them. If a report does not arrive, its counts go into the next one.
 *
 * At most one report is in flight. now_ns is by the caller's clock, which should go on while the
 * machine sleeps; unix_s is the Unix time in seconds.
 */
#ifndef LIB_SHIP_REPORTS_H
#define LIB_SHIP_REPORTS_H

#include <stdbool.h>

#include "lib/base/util.h"
#include "proto/client_report.h"
#include "proto/envelope.h"

#define REPORTS_WITH_ENVELOPE_NS (30 * NS_PER_SEC)
#define REPORTS_ALONE_NS	 (60 * NS_PER_SEC)

/* A complete item of an envelope: header, payload and newline. */
struct reports_item {
	char text[ENVELOPE_HEADER_SIZE + CLIENT_REPORT_SIZE];
	size_t len;
};

/* Makes the item of a client report with these counts and this time. Returns 0 or -ENOMEM. */
must_check int reports_make(const struct client_report *r, int64_t unix_s,
			    struct reports_item *ret);

struct reports {
	struct client_report counted;
	struct client_report in_flight; /* all zeros: no report is in flight */
	uint64_t last_ns;		/* of the last reports_take(), or of reports_init() */
};

/* Starts with no counts. */
void reports_init(struct reports *r, uint64_t now_ns);

/* Counts n lost envelopes. */
void reports_count(struct reports *r, enum envelope_kind kind, enum client_report_reason reason,
		   uint64_t n);

/*
 * Return the time from which on a report may go with an envelope, or alone; UINT64_MAX if
 * reports_any() is false.
 */
uint64_t reports_with_envelope_ns(const struct reports *r);
uint64_t reports_alone_ns(const struct reports *r);

/* Returns true if there are counts to report and no report is in flight. Ignores the times. */
bool reports_any(const struct reports *r);

/*
 * Makes the item of a report of all counts. The caller sends it, and then calls reports_arrived()
 * or reports_failed(); until then the report is in flight. Call this only if reports_any() is true.
 * Returns 0, or -ENOMEM: then the counts are unchanged.
 */
must_check int reports_take(struct reports *r, uint64_t now_ns, int64_t unix_s,
			    struct reports_item *ret);

/*
 * End the flight of a report: reports_arrived() drops its counts; reports_failed() keeps them for
 * the next report. Both do nothing if no report is in flight.
 */
void reports_arrived(struct reports *r);
void reports_failed(struct reports *r);

#endif
