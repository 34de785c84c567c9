/*
 * Which envelopes were lost and are not told of yet, and when to tell: with the
 * next envelope when 30 seconds have passed since the last report, alone after
 * 60. A report that does not arrive is told again, with the next one.
 *
 * Times are of a clock of the caller's that goes on while the machine sleeps.
 */
#ifndef LIB_SHIP_REPORTS_H
#define LIB_SHIP_REPORTS_H

#include <stdbool.h>

#include "lib/base/util.h"
#include "proto/client_report.h"
#include "proto/envelope.h"

#define REPORTS_RIDE_NS	 (30 * NS_PER_SEC)
#define REPORTS_ALONE_NS (60 * NS_PER_SEC)

/* An item of an envelope: its header, its payload, and what follows that. */
struct reports_item {
	char text[ENVELOPE_HEADER_SIZE + CLIENT_REPORT_SIZE];
	size_t len;
};

/* Makes the item of a report. Returns 0 or -ENOMEM. */
must_check int reports_make(const struct client_report *r, int64_t unix_s,
			    struct reports_item *ret);

struct reports {
	struct client_report counted;
	struct client_report on_way; /* all 0: none is */
	uint64_t last_ns;	     /* when one was made, or the start */
};

void reports_init(struct reports *r, uint64_t now_ns);

void reports_count(struct reports *r, enum envelope_kind kind, enum client_report_reason reason,
		   uint64_t n);

/* When the next may go with an envelope, or alone; UINT64_MAX: none is due. */
uint64_t reports_ride_ns(const struct reports *r);
uint64_t reports_alone_ns(const struct reports *r);

/* Is there anything to tell, due or not, and is none on its way? */
bool reports_any(const struct reports *r);

/*
 * Makes an item of what is to be told; reports_arrived or reports_failed is
 * due then. Only if reports_any. Returns 0, or -ENOMEM: then none was made.
 */
must_check int reports_take(struct reports *r, uint64_t now_ns, int64_t unix_s,
			    struct reports_item *ret);

/* What became of the one on its way; nothing if none is. */
void reports_arrived(struct reports *r);
void reports_failed(struct reports *r);

#endif
