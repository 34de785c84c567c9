/*
 * The outbox decides what ship sends next, and what becomes of each envelope. main.c adds each
 * envelope that is meant for the server, calls outbox_step() at each turn of its loop, and learns
 * the result of each envelope through a callback.
 *
 * One request is in flight at a time: for the oldest item of the queue, for an envelope of the
 * spool, or without an envelope (a client report or a probe). The queue goes first; envelopes of
 * the spool follow one by one, with a pause after each.
 *
 * While the server does not answer (destination.h, backoff) envelopes go to the spool. Without a
 * spool they stay in the queue; when that is full the oldest is dropped. An envelope that a
 * Spotlight did not answer twice is dropped, too.
 *
 * Every dropped envelope is counted for the next client report (lib/ship/reports.h). A rate limit
 * on chunks does not delay a report; one on everything does.
 *
 * Times are by clock_boot_ns(). Nothing here waits.
 */
#ifndef DAEMON_SHIP_OUTBOX_H
#define DAEMON_SHIP_OUTBOX_H

#include <stdbool.h>

#include "daemon/ship/destination.h"
#include "daemon/ship/queue.h"
#include "daemon/ship/spooler.h"
#include "lib/base/buf.h"
#include "lib/ship/transport.h"

/* Receives the answer to a probe; status 0: the server did not answer. */
typedef void (*outbox_probed_fn)(const struct transport_answer *answer);

/* The kind of a request without an envelope. */
enum outbox_extra { EXTRA_NONE, EXTRA_REPORT, EXTRA_PROBE };

/*
 * Called once for each item, which is the callee's to free. result: as in struct
 * msg_envelope_done.
 */
typedef void (*outbox_done_fn)(struct queue_item *item, uint32_t result);

struct outbox {
	struct transport *transport;
	outbox_done_fn done;
	struct destination to;
	struct spooler spooler;
	struct queue queue;

	/* The request in flight is for this item, for spooler (.sending), or an extra. */
	struct queue_item *current;
	enum outbox_extra extra;
	struct buf body; /* of the request in flight: the transport reads it */

	outbox_probed_fn probed; /* a probe is requested; NULL: none is */
	bool last_report_due;	 /* outbox_close() was called, and the last report is not sent */
	uint64_t deadline_ns;	 /* 0: none */
	size_t unsent;		 /* items that were left at the deadline */
};

/*
 * Initialises an empty outbox without a spool. The transport stays the caller's and must outlive
 * the outbox.
 */
void outbox_init(struct outbox *o, struct transport *transport, outbox_done_fn done);
/*
 * Aborts the request in flight, without a call of done. Logs how many envelopes were not sent by
 * the deadline.
 */
void outbox_fini(struct outbox *o);

/* Counts n envelopes that were lost before they reached ship, for the client report. */
void outbox_count_lost(struct outbox *o, enum envelope_kind kind, enum client_report_reason reason,
		       uint64_t n);

/*
 * Sets the destination (destination_set_dsn). dsn NULL: items end with SHIP_NOTHING.
 */
void outbox_set_dsn(struct outbox *o, const struct dsn *dsn, uint64_t limited_until_ns);

/* Takes the item. Drops the oldest items if the queue is full. */
void outbox_add(struct outbox *o, struct queue_item *item);

/*
 * Requests a probe (MSG_PROBE): a request without an envelope that shows whether the server accepts
 * the DSN. It is sent as soon as no request is in flight, even during a backoff. outbox_step()
 * calls probed once.
 */
void outbox_probe(struct outbox *o, outbox_probed_fn probed);

/* Processes the answer, if there is one, and starts the next request that is due. */
void outbox_step(struct outbox *o);

/*
 * Returns the milliseconds until outbox_step() has something to do, besides answers, for which
 * transport_wait() returns; -1: nothing is due.
 */
int outbox_wait_ms(const struct outbox *o);

/*
 * Sets the deadline to timeout_ns from now, unless an earlier one is set. From now on nothing is
 * taken out of the spool. At the deadline the items that are left go to the spool, or are lost.
 */
void outbox_set_deadline(struct outbox *o, uint64_t timeout_ns);

/*
 * Call this when no more items will be added. When all items are sent, a last client report
 * follows. If only the report is left, its deadline is timeout_ns from now.
 */
void outbox_close(struct outbox *o, uint64_t timeout_ns);

/* Returns whether no item and no last report is left. The spool does not count. */
bool outbox_is_empty(const struct outbox *o);

#endif
