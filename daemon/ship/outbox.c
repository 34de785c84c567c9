#include "daemon/ship/outbox.h"

#include <stdio.h>
#include <string.h>

#include "daemon/common/log.h"
#include "daemon/common/random.h"
#include "daemon/msg/discard.h"
#include "daemon/msg/msg_unwind.h"
#include "lib/base/clock.h"
#include "proto/sdk.h"

void outbox_init(struct outbox *o, struct transport *transport, outbox_done_fn done)
{
	*o = (struct outbox){.transport = transport, .done = done};
	buf_init(&o->body, QUEUE_BODY_MAX);
	destination_init(&o->destination);
	spooler_init(&o->spooler, &o->destination.reports);
}

void outbox_fini(struct outbox *o)
{
	if (o->unsent > 0)
		log_warning("%zu chunk%s not sent before the end of this process, and the server "
			    "will not get %s: there is no spool, or it cannot be written",
			    o->unsent, o->unsent == 1 ? " was" : "s were",
			    o->unsent == 1 ? "it" : "them");
	transport_abort(o->transport);
	if (o->current != NULL)
		queue_item_free(o->current);
	o->current = NULL;
	while (o->queue.n > 0)
		queue_item_free(queue_pop(&o->queue));
	buf_fini(&o->body);
	spooler_fini(&o->spooler);
}

void outbox_set_dsn(struct outbox *o, const struct dsn *dsn, uint64_t limited_until_ns, int denial)
{
	destination_set_dsn(&o->destination, dsn, limited_until_ns, denial);
	if (dsn != NULL)
		spooler_set_dsn(&o->spooler, dsn);
}

void outbox_count_lost(struct outbox *o, enum envelope_kind kind, enum client_report_reason reason,
		       uint64_t n)
{
	reports_count(&o->destination.reports, kind, reason, n);
}

/* Ends an item that is lost, and counts it for the client report. */
static void lose(struct outbox *o, struct queue_item *item, enum discard reason)
{
	outbox_count_lost(o, package_kind(&item->package), discard_report(reason), 1);
	o->done(item, reason);
}

/* Moves the item to the spool; returns false if that is not possible. */
static bool spool_item(struct outbox *o, struct queue_item *item)
{
	if (!spooler_put(&o->spooler, item))
		return false;
	o->done(item, SHIP_SPOOLED);
	return true;
}

/* Tries each item once, until one fails. Items that are too large for the spool stay. */
static void spool_queue(struct outbox *o)
{
	for (size_t left = o->queue.n; left > 0; left--) {
		struct queue_item *item = queue_pop(&o->queue);

		if (spool_item(o, item))
			continue;
		if (!item->is_too_large) {
			queue_push_front(&o->queue, item);
			return;
		}
		queue_push_back(&o->queue, item);
	}
}

/* Ends an item that has no room in the queue. */
static void drop(struct outbox *o, struct queue_item *item)
{
	if (spool_item(o, item))
		return;
	if (o->destination.is_spotlight)
		log_debug("chunk %s is dropped: Spotlight is too slow, and the queue is full",
			  item->chunk_id);
	else
		log_warning("chunk %s is dropped: the server is too slow, and the queue is full",
			    item->chunk_id);
	lose(o, item, DISCARD_QUEUE_OVERFLOW);
}

void outbox_probe(struct outbox *o, outbox_probed_fn probed)
{
	o->probed = probed;
}

void outbox_add(struct outbox *o, struct queue_item *item)
{
	/* An earlier ship put it there and died before it told the broker. */
	if (spooler_has(&o->spooler, item->chunk_id)) {
		o->done(item, SHIP_SPOOLED);
		return;
	}
	while (!queue_has_room(&o->queue, item) && o->queue.n > 0)
		drop(o, queue_pop(&o->queue));
	queue_push_back(&o->queue, item);
}

/* Undoes the preparation of a request. */
static void drop_body(struct outbox *o)
{
	buf_fini(&o->body);
	reports_failed(&o->destination.reports);
}

/* Starts the request with o->body, which is freed after an error. */
static int post_body(struct outbox *o)
{
	int r = transport_set_target(o->transport, &o->destination.dsn, o->destination.compression);

	destination_note_request(&o->destination);
	if (r == 0)
		r = transport_post(o->transport, o->body.data, o->body.len);
	if (r < 0)
		drop_body(o);
	return r;
}

/* Makes the body of a request, and starts the request. */
static int post(struct outbox *o, const struct package *package, const struct reports_item *report)
{
	struct package sent = *package;
	int r;

	sent.compression = o->destination.compression;
	r = package_compress(&sent, (int64_t)(clock_wall_ns() / NS_PER_US), report, &o->body);
	if (r < 0) {
		drop_body(o);
		return r;
	}
	return post_body(o);
}

static bool is_busy(const struct outbox *o)
{
	return o->current != NULL || o->spooler.sending || o->extra != EXTRA_NONE;
}

static bool is_limited(const struct outbox *o, const struct package *p)
{
	return destination_limit_ns(&o->destination, package_kind(p)) > clock_boot_ns();
}

/* Starts the request for the next item; ends items that cannot be sent. */
static void send_queued(struct outbox *o)
{
	while (!is_busy(o) && o->queue.n > 0) {
		struct queue_item *item = queue_pop(&o->queue);
		int r;

		if (!o->destination.has_dsn) {
			o->done(item, SHIP_NOT_SENT);
			continue;
		}
		if (is_limited(o, &item->package)) {
			log_debug("chunk %s is dropped: a rate limit of the server forbids "
				  "sending it",
				  item->chunk_id);
			lose(o, item, DISCARD_RATE_LIMITED);
			continue;
		}
		r = post(o, &item->package,
			 destination_report(&o->destination,
					    reports_with_envelope_ns(&o->destination.reports)));
		if (r < 0) {
			log_warning("chunk %s is dropped: the request cannot be made: %s",
				    item->chunk_id, strerror(-r));
			lose(o, item, DISCARD_MEMORY);
			continue;
		}
		o->current = item;
	}
}

static void send_spooled(struct outbox *o, enum envelope_kind kind)
{
	const struct reports_item *report = destination_report(
		&o->destination, reports_with_envelope_ns(&o->destination.reports));

	if (!spooler_get(&o->spooler, kind, o->destination.compression, report, &o->body))
		reports_failed(&o->destination.reports);
	else if (post_body(o) < 0)
		spooler_handle_outcome(&o->spooler, OUTCOME_NO_ANSWER);
}

static void send_extra(struct outbox *o, enum outbox_extra extra, const struct reports_item *report)
{
	struct package package = {
		.sdk_name = SDK_NAME,
		.sdk_version = SDK_VERSION,
		.payload_fd = -1,
	};

	random_bytes(package.event_id, sizeof(package.event_id));
	if (post(o, &package, report) == 0)
		o->extra = extra;
}

static void send_report(struct outbox *o)
{
	const struct reports_item *report = destination_report(&o->destination, 0);

	o->last_report_due = false;
	if (report != NULL)
		send_extra(o, EXTRA_REPORT, report);
}

/* Reports the answer to a probe, if it was requested and not sent because of a denial. */
static void end_probe(struct outbox *o, const struct transport_answer *answer)
{
	const outbox_probed_fn probed = o->probed;

	o->probed = NULL;
	if (probed != NULL)
		probed(answer);
}

static bool is_denied(const struct outbox *o)
{
	return o->destination.denial != 0;
}

/* Returns when a denial is to be tried again by a probe; UINT64_MAX: it is not. */
static uint64_t trial_due_ns(const struct outbox *o)
{
	if (!is_denied(o) || !o->destination.has_dsn || o->deadline_ns != 0)
		return UINT64_MAX;
	return max_u64(o->destination.retry.until_ns,
		       rate_limit_until(&o->destination.limits, RATE_LIMIT_ALL));
}

/*
 * Sends a client report without events: the server checks the key, and neither shows nor counts
 * the report.
 */
static void send_probe(struct outbox *o)
{
	static const struct client_report nothing;
	struct reports_item report;

	if (rate_limit_until(&o->destination.limits, RATE_LIMIT_ALL) > clock_boot_ns()) {
		end_probe(o, &(struct transport_answer){.status = 429});
		return;
	}
	if (reports_make(&nothing, (int64_t)(clock_wall_ns() / NS_PER_SEC), &report) == 0)
		send_extra(o, EXTRA_PROBE, &report);
	if (o->extra != EXTRA_PROBE)
		end_probe(o, &(struct transport_answer){.error = "no memory for a request"});
}

/* Keeps an item that the server has not taken: in the spool, else in the queue. */
static void put_back(struct outbox *o, struct queue_item *item)
{
	if (spool_item(o, item))
		return;
	if (o->destination.is_spotlight && item->was_tried) {
		log_debug("chunk %s is dropped: Spotlight has twice not answered", item->chunk_id);
		lose(o, item, DISCARD_NETWORK_ERROR);
		return;
	}
	item->was_tried = true;
	/* Behind the others: perhaps it is the only one that gets no answer. */
	if (queue_has_room(&o->queue, item))
		queue_push_back(&o->queue, item);
	else
		drop(o, item);
}

static void end_item(struct outbox *o, struct queue_item *item, enum outcome outcome)
{
	switch (outcome) {
	case OUTCOME_NO_ANSWER:
	case OUTCOME_DENIED:
		put_back(o, item);
		return;
	case OUTCOME_ACCEPTED:
		o->done(item, SHIP_DONE);
		return;
	case OUTCOME_RATE_LIMITED:
		/* The server has counted it. */
		o->done(item, DISCARD_RATE_LIMITED);
		return;
	case OUTCOME_REFUSED:
		lose(o, item, DISCARD_SEND_ERROR);
		return;
	}
}

static void log_answer(const struct outbox *o, enum outcome outcome,
		       const struct transport_answer *a)
{
	char chunk[sizeof("chunk ") + MSG_ID_SIZE];
	const char *what = "a chunk of the spool";
	const char *detail = a->location != NULL ? a->location : a->sentry_error;

	if (o->current != NULL) {
		(void)snprintf(chunk, sizeof(chunk), "chunk %s", o->current->chunk_id);
		what = chunk;
	} else if (o->extra == EXTRA_REPORT) {
		what = "a report of lost chunks";
	} else if (o->extra == EXTRA_PROBE) {
		what = "a probe of the server";
	}
	if (outcome == OUTCOME_REFUSED)
		log_warning("%s was refused by the server: status %d%s%s%s", what, a->status,
			    detail == NULL	  ? ""
			    : a->location != NULL ? ", a redirect, which is not followed, to "
						  : ", ",
			    detail == NULL ? "" : detail,
			    o->extra == EXTRA_NONE ? "; it is not sent again" : "");
	else
		log_debug("%s: the server answers %d", what, a->status);
}

/* A longer text of a server is cut off. */
#define TEXT_SIZE 1024

/* Copies a text of the server without the key. NULL stays NULL. */
static const char *without_key(const struct outbox *o, const char *text, char ret[TEXT_SIZE])
{
	int n;

	if (text == NULL)
		return NULL;
	n = snprintf(ret, TEXT_SIZE, "%s", text);
	dsn_hide_keys(&o->destination.dsn, ret);
	/* The end may be a part of the key. */
	if (n >= TEXT_SIZE)
		ret[TEXT_SIZE - DSN_KEY_SIZE] = '\0';
	return ret;
}

static void handle_answer(struct outbox *o, const struct transport_answer *from_server)
{
	char location[TEXT_SIZE], sentry_error[TEXT_SIZE], error[TEXT_SIZE];
	struct transport_answer answer = *from_server;
	const struct transport_answer *a = &answer;
	const enum outbox_extra extra = o->extra;
	struct queue_item *item = o->current;
	enum outcome outcome;

	answer.location = without_key(o, a->location, location);
	answer.sentry_error = without_key(o, a->sentry_error, sentry_error);
	answer.error = without_key(o, a->error, error);
	outcome = destination_handle_answer(&o->destination, a, extra != EXTRA_NONE);
	buf_fini(&o->body);
	if (a->status != 0)
		log_answer(o, outcome, a);
	if (outcome != OUTCOME_NO_ANSWER && !is_denied(o))
		spooler_server_answers(&o->spooler);
	o->current = NULL;
	o->extra = EXTRA_NONE;
	if (extra == EXTRA_PROBE)
		end_probe(o, a);
	else if (item != NULL)
		end_item(o, item, outcome);
	else if (extra == EXTRA_NONE)
		spooler_handle_outcome(&o->spooler, outcome);
}

/* The deadline has come: moves all items to the spool, and ends those that are left. */
static void give_up(struct outbox *o)
{
	if (is_busy(o)) {
		const struct transport_answer none = {.error = "no answer before the end"};

		transport_abort(o->transport);
		handle_answer(o, &none);
	}
	while (o->queue.n > 0) {
		struct queue_item *item = queue_pop(&o->queue);

		/* A disk without room for one envelope may have room for the next. */
		spooler_retry_disk(&o->spooler);
		if (spool_item(o, item))
			continue;
		o->unsent++;
		lose(o, item, is_denied(o) ? DISCARD_SEND_ERROR : DISCARD_NETWORK_ERROR);
	}
}

/* Returns whether the deadline has come, or no request will start before it. */
static bool is_over(const struct outbox *o)
{
	return o->deadline_ns != 0 &&
	       (clock_boot_ns() >= o->deadline_ns ||
		(!is_busy(o) &&
		 (is_denied(o) || destination_backs_off(&o->destination, o->deadline_ns))));
}

static uint64_t spool_due_ns(const struct outbox *o, enum envelope_kind kind)
{
	if (!o->destination.has_dsn || o->deadline_ns != 0)
		return UINT64_MAX;
	return max_u64(spooler_due_ns(&o->spooler, kind),
		       destination_limit_ns(&o->destination, kind));
}

/* The last report is due at once, and is given up if the server does not answer. */
static uint64_t report_due_ns(const struct outbox *o)
{
	const struct destination *d = &o->destination;
	uint64_t due_ns = reports_alone_ns(&d->reports);

	if (!d->has_dsn || d->no_reports || is_denied(o) ||
	    (o->deadline_ns != 0 && !o->last_report_due))
		return UINT64_MAX;
	if (o->last_report_due)
		due_ns = reports_any(&d->reports) && d->retry.failures == 0 ? 0 : UINT64_MAX;
	return max_u64(due_ns, rate_limit_until(&d->limits, RATE_LIMIT_ALL));
}

/* Returns whether a request for something that is not in the queue may start. */
static bool may_send(const struct outbox *o)
{
	return !is_busy(o) && o->queue.n == 0 && !is_denied(o) &&
	       !destination_backs_off(&o->destination, clock_boot_ns());
}

void outbox_step(struct outbox *o)
{
	struct transport_answer answer;

	if (transport_step(o->transport, &answer) > 0)
		handle_answer(o, &answer);
	spooler_check(&o->spooler);
	if ((o->probed != NULL || trial_due_ns(o) <= clock_boot_ns()) && !is_busy(o))
		send_probe(o);
	if (is_over(o))
		give_up(o);
	else if (is_denied(o) || destination_backs_off(&o->destination, clock_boot_ns()))
		spool_queue(o);
	else
		send_queued(o);
	if (may_send(o) && report_due_ns(o) <= clock_boot_ns())
		send_report(o);
	for (int i = 0; i < ENVELOPE_KIND_N; i++) {
		const enum envelope_kind kind = (enum envelope_kind)i;

		if (may_send(o) && spool_due_ns(o, kind) <= clock_boot_ns())
			send_spooled(o, kind);
	}
}

int outbox_wait_ms(const struct outbox *o)
{
	const uint64_t now_ns = clock_boot_ns();
	uint64_t due_ns = UINT64_MAX;

	if (is_denied(o)) {
		due_ns = is_busy(o) ? UINT64_MAX : trial_due_ns(o);
	} else if (!is_busy(o)) {
		due_ns = report_due_ns(o);
		for (int i = 0; i < ENVELOPE_KIND_N; i++)
			due_ns = min_u64(due_ns, spool_due_ns(o, (enum envelope_kind)i));
		if (o->queue.n > 0)
			due_ns = now_ns;
		if (o->destination.retry.failures > 0)
			due_ns = max_u64(due_ns, o->destination.retry.until_ns);
	}
	if (o->deadline_ns != 0 && !outbox_is_empty(o))
		due_ns = min_u64(due_ns, o->deadline_ns);
	if (due_ns == UINT64_MAX)
		return -1;
	if (due_ns <= now_ns)
		return 0;
	return (int)min_u64((due_ns - now_ns) / NS_PER_MS + 1, INT32_MAX);
}

void outbox_set_deadline(struct outbox *o, uint64_t timeout_ns)
{
	const uint64_t deadline_ns = clock_boot_ns() + timeout_ns;

	if (o->deadline_ns == 0 || deadline_ns < o->deadline_ns)
		o->deadline_ns = deadline_ns;
}

void outbox_close(struct outbox *o, uint64_t timeout_ns)
{
	o->last_report_due = true;
	if (o->queue.n == 0 && o->current == NULL)
		o->deadline_ns = clock_boot_ns() + timeout_ns;
}

/* Returns whether the last report is in flight, or can be sent before the deadline. */
static bool report_is_left(const struct outbox *o)
{
	return o->extra == EXTRA_REPORT ||
	       (o->last_report_due && report_due_ns(o) < o->deadline_ns);
}

bool outbox_is_empty(const struct outbox *o)
{
	return o->queue.n == 0 && o->current == NULL && !report_is_left(o);
}
