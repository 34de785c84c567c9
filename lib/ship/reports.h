/*
 * Counts lost envelopes until a client report (proto/client_report.h) about them has arrived at the
 * server. A report goes with the next envelope once 30 s have passed since the last report, or
 * alone after 60 s. If it does not arrive its counts go into the next one.
 *
 * Only one report is in flight. Times are of the caller's clock, which should go on while the
 * machine sleeps.
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

/* Makes an item of counts; unix_s: its time. Returns 0 or -ENOMEM. */
must_check int reports_make(const struct client_report *r, int64_t unix_s,
			    struct reports_item *ret);

struct reports {
	struct client_report counted;
	struct client_report in_flight; /* all zeros: no report is in flight */
	uint64_t last_ns;		/* time of the last report, or of reports_init() */
};

/* Starts with no counts. */
void reports_init(struct reports *r, uint64_t now_ns);

/* Counts n lost envelopes. */
void reports_count(struct reports *r, enum envelope_kind kind, enum client_report_reason reason,
		   uint64_t n);

/* Return when a report may go with an envelope, or alone; UINT64_MAX: nothing to report. */
uint64_t reports_with_envelope_ns(const struct reports *r);
uint64_t reports_alone_ns(const struct reports *r);

/* Returns whether there are counts to report, due or not, and no report is in flight. */
bool reports_any(const struct reports *r);

/*
 * Makes a report of all counts, which is in flight until reports_arrived() or reports_failed().
 * Call it only if reports_any(). Returns 0, or -ENOMEM: then nothing changes.
 */
must_check int reports_take(struct reports *r, uint64_t now_ns, int64_t unix_s,
			    struct reports_item *ret);

/* End the flight of the report: drop its counts, or keep them for the next one. */
void reports_arrived(struct reports *r);
void reports_failed(struct reports *r);

#endif
