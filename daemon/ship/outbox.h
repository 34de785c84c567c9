/*
 * The outbox decides which envelope or report ship sends next, and whether an envelope is sent,
 * stored or dropped. main.c adds each envelope for the server, calls outbox_step() at each turn of
 * its loop, and gets the result of each envelope through a callback.
 *
 * Envelopes wait in the queue (queue.h, in memory) or in the spool (spooler.h, on disk). One
 * request is in flight at a time. It carries the first item of the queue, an envelope of the
 * spool, or no envelope (a client report or a probe). The queue goes first; envelopes of the spool
 * follow one by one, with a pause after each.
 *
 * During a backoff or a denial (destination.h) envelopes go to the spool. Without a spool they stay
 * in the queue. After a request without an answer, or with a denial, its envelope goes behind the
 * others; if the queue has no room for it by then, it is dropped. If there is no room for a new
 * envelope, the first ones of the queue are dropped. An envelope is also dropped if
 * - it is in the queue, and a rate limit forbids it or the request cannot be made (an envelope of
 *   the spool waits in these two cases);
 * - the server refuses it, or answers 429;
 * - Spotlight (destination.h) has not answered two requests with it.
 * A dropped envelope is counted for the next client report (lib/ship/reports.h). Exception: after
 * an answer 429 the envelope is not counted, because the server itself has counted it.
 *
 * Order of calls: outbox_init(); spooler_open() of o->spooler, if there is a spool; the settings of
 * o->destination, then outbox_set_dsn(). For each envelope outbox_add(). In each turn of the loop
 * outbox_step(), then transport_wait() for outbox_wait_ms(). At the end outbox_set_deadline() and
 * outbox_close(), further turns until outbox_is_empty(), then outbox_fini().
 *
 * Times are by clock_boot_ns(). No function waits for the server; a function that moves an envelope
 * to the spool waits for the disk (fsync(2)).
 */
#ifndef DAEMON_SHIP_OUTBOX_H
#define DAEMON_SHIP_OUTBOX_H

#include <stdbool.h>

#include "daemon/ship/destination.h"
#include "daemon/ship/queue.h"
#include "daemon/ship/spooler.h"
#include "lib/base/buf.h"
#include "lib/ship/transport.h"

/*
 * Receives the answer to a probe, valid during the call. status 0: the server did not answer, or
 * the probe could not be made. 429: the server answered so, or a rate limit forbade the probe.
 */
typedef void (*outbox_probed_fn)(const struct transport_answer *answer);

/* The kind of a request without an envelope. EXTRA_NONE: no such request is in flight. */
enum outbox_extra { EXTRA_NONE, EXTRA_REPORT, EXTRA_PROBE };

/*
 * Receives each item of outbox_add() once its result is known, except for the items that
 * outbox_fini() frees. The callee owns the item. result: enum ship_result or enum discard, as in
 * struct msg_envelope_done.
 */
typedef void (*outbox_done_fn)(struct queue_item *item, uint32_t result);

struct outbox {
	struct transport *transport;
	outbox_done_fn done;
	struct destination destination;
	struct spooler spooler;
	struct queue queue;

	/*
	 * What the request in flight carries: the item current, an envelope of the spool
	 * (spooler.sending), or no envelope (extra). At most one of the three is set. If none is,
	 * no request is in flight.
	 */
	struct queue_item *current;
	enum outbox_extra extra;
	struct buf body; /* of the request in flight; the transport reads it */

	outbox_probed_fn probed; /* of the requested probe; NULL: no probe is requested */
	bool last_report_due;	 /* outbox_close() was called; the last report is not sent yet */
	uint64_t deadline_ns;	 /* 0: no deadline */
	size_t unsent;		 /* items that were lost at the deadline */
};

/*
 * Initialises an empty outbox without a spool. The transport stays the caller's and must outlive
 * the outbox. The struct must not move afterwards: o->spooler has a pointer into it.
 */
void outbox_init(struct outbox *o, struct transport *transport, outbox_done_fn done);
/*
 * Aborts the request in flight, and frees the items that are left, without a call of done or
 * probed. Logs how many envelopes were lost at the deadline.
 */
void outbox_fini(struct outbox *o);

/* Counts, for the client report, n envelopes that were lost before they reached ship. */
void outbox_count_lost(struct outbox *o, enum envelope_kind kind, enum client_report_reason reason,
		       uint64_t n);

/*
 * Sets the server; the arguments are those of destination_set_dsn(). dsn NULL: there is no server,
 * and items end with SHIP_NOT_SENT.
 */
void outbox_set_dsn(struct outbox *o, const struct dsn *dsn, uint64_t limited_until_ns, int denial);

/*
 * Adds an item, which the outbox owns from now on. If the queue is full, its first items go to the
 * spool, or are dropped. If the spool has the item's chunk already, the item ends with
 * SHIP_SPOOLED: an earlier ship has stored the chunk.
 */
void outbox_add(struct outbox *o, struct queue_item *item);

/*
 * Requests a probe (destination.h), as MSG_PROBE asks. outbox_step() sends the probe as soon as no
 * request is in flight, even during a backoff, and calls probed once with the answer. If a probe is
 * in flight already, probed gets the answer to that one. Another outbox_probe() before the answer
 * replaces probed: the first callback is not called.
 */
void outbox_probe(struct outbox *o, outbox_probed_fn probed);

/*
 * Processes the answer to the request in flight, if it has come, and starts the next request that
 * is due. Moves and drops envelopes. May call done and probed.
 */
void outbox_step(struct outbox *o);

/*
 * Returns the milliseconds until outbox_step() is due; -1: it is due only after an answer or a call
 * of another function here. The value is a timeout for transport_wait(), which also returns when an
 * answer comes.
 */
int outbox_wait_ms(const struct outbox *o);

/*
 * Sets the deadline of the outbox to timeout_ns from now, unless an earlier one is set. From now on
 * no envelope of the spool is sent. At the deadline outbox_step() aborts the request in flight, and
 * moves the items that are left to the spool; those that do not get there are lost. If a denial, or
 * a backoff until after the deadline, permits no further request, outbox_step() does this at once.
 */
void outbox_set_deadline(struct outbox *o, uint64_t timeout_ns);

/*
 * Call it after outbox_set_deadline(), when no more items will be added. After the last item
 * outbox_step() sends a last client report, if there are losses to report and the server has
 * answered the last request. If no item is left now, timeout_ns from now replaces the deadline.
 * Otherwise the deadline stays.
 */
void outbox_close(struct outbox *o, uint64_t timeout_ns);

/*
 * Returns true if no item is left, and the last report is not in flight and will not be sent before
 * the deadline. Envelopes in the spool do not count.
 */
bool outbox_is_empty(const struct outbox *o);

#endif
