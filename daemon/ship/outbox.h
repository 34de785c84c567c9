/*
 * The outbox decides which envelope or report ship sends next, and whether an envelope is sent,
 * stored or dropped. main.c adds each envelope for the server, calls outbox_step() at each turn of
 * its loop, and gets the result of each envelope through a callback.
 *
 * One request is in flight at a time: for the oldest item of the queue, for an envelope of the
 * spool, or without an envelope (a client report or a probe). The queue goes first; envelopes of
 * the spool follow one by one, with a pause after each.
 *
 * While the server does not answer (destination.h, backoff) envelopes go to the spool. Without a
 * spool they stay in the queue; when that is full the oldest is dropped. An envelope that a
 * Spotlight did not answer twice is dropped, too. While the server refuses the DSN (destination.h,
 * denial) envelopes wait in the same way, and only probes are sent.
 *
 * Every dropped envelope is counted for the next client report (lib/ship/reports.h). Only a rate
 * limit on all categories delays a report.
 *
 * Times are by clock_boot_ns(). No function waits.
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
 * Called once for each item that outbox_add() has taken, except those that are left at
 * outbox_fini(). The callee owns the item. result: as in struct msg_envelope_done.
 */
typedef void (*outbox_done_fn)(struct queue_item *item, uint32_t result);

struct outbox {
	struct transport *transport;
	outbox_done_fn done;
	struct destination destination;
	struct spooler spooler;
	struct queue queue;

	/*
	 * The request in flight is for the item current, for an envelope of the spool
	 * (spooler.sending), or without an envelope (extra). At most one of the three is set.
	 */
	struct queue_item *current;
	enum outbox_extra extra;
	struct buf body; /* of the request in flight; the transport reads it */

	outbox_probed_fn probed; /* a probe is requested; NULL: none is */
	bool last_report_due;	 /* outbox_close() was called; the last report is not sent yet */
	uint64_t deadline_ns;	 /* 0: none */
	size_t unsent;		 /* items that were left at the deadline */
};

/*
 * Initialises an empty outbox without a spool. The transport stays the caller's and must outlive
 * the outbox.
 */
void outbox_init(struct outbox *o, struct transport *transport, outbox_done_fn done);
/*
 * Aborts the request in flight, and frees the items that are left, without a call of done. Logs the
 * number of envelopes that were not sent by the deadline.
 */
void outbox_fini(struct outbox *o);

/* Counts n envelopes that were lost before they reached ship, for the client report. */
void outbox_count_lost(struct outbox *o, enum envelope_kind kind, enum client_report_reason reason,
		       uint64_t n);

/*
 * Sets the destination (destination_set_dsn). dsn NULL: there is none, and items end with
 * SHIP_NOT_SENT.
 */
void outbox_set_dsn(struct outbox *o, const struct dsn *dsn, uint64_t limited_until_ns, int denial);

/* Adds an item, which the outbox owns from now on. Drops the oldest items if the queue is full. */
void outbox_add(struct outbox *o, struct queue_item *item);

/*
 * Requests a probe (MSG_PROBE): a request without an envelope that shows whether the server accepts
 * the DSN. outbox_step() sends the probe as soon as no request is in flight, even during a backoff,
 * and calls probed once with the answer, which may be that of a probe in flight. A second call
 * before that replaces probed.
 */
void outbox_probe(struct outbox *o, outbox_probed_fn probed);

/* Processes the answer, if there is one, and starts the next request that is due. */
void outbox_step(struct outbox *o);

/*
 * Returns the milliseconds until the next call of outbox_step() is due, as the timeout of
 * transport_wait(), which returns earlier when there is an answer; -1: no time is set.
 */
int outbox_wait_ms(const struct outbox *o);

/*
 * Sets the deadline to timeout_ns from now, unless an earlier one is set. From now on no envelope
 * of the spool is sent. At the deadline the items that are left go to the spool, or are lost.
 */
void outbox_set_deadline(struct outbox *o, uint64_t timeout_ns);

/*
 * Call this when no more items will be added. After the last item, ship sends a last client report.
 * If there are no items any more, the deadline of this report is timeout_ns from now.
 */
void outbox_close(struct outbox *o, uint64_t timeout_ns);

/* Returns whether no item and no last report is left. The spool does not count. */
bool outbox_is_empty(const struct outbox *o);

#endif
