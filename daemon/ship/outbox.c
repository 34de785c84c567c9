#include "daemon/ship/outbox.h"

#include <stdio.h>
#include <string.h>

#include "daemon/common/log.h"
#include "daemon/common/random.h"
#include "daemon/msg/discard.h"
#include "daemon/msg/msg_unwind.h"
#include "daemon/ship/verdict.h"
#include "lib/base/clock.h"
#include "proto/sdk.h"

void outbox_init(struct outbox *o, struct transport *transport, outbox_fn done)
{
	*o = (struct outbox){.transport = transport, .done = done};
	buf_init(&o->body, OUTBOX_BODY_MAX);
	destination_init(&o->to);
	spooled_init(&o->spooled, &o->to.reports);
}

void outbox_fini(struct outbox *o)
{
	if (o->unsent > 0)
		log_warning("%zu chunk%s not sent: the time is up", o->unsent,
			    o->unsent == 1 ? " was" : "s were");
	transport_abort(o->transport);
	buf_fini(&o->body);
	spooled_fini(&o->spooled);
}

void outbox_set_dsn(struct outbox *o, const struct dsn *dsn, uint64_t limited_until_ns)
{
	destination_set(&o->to, dsn, limited_until_ns);
	o->limited_told_ns = limited_until_ns;
	if (dsn != NULL)
		spooled_set_dsn(&o->spooled, dsn);
}

void outbox_lost(struct outbox *o, enum envelope_kind kind, enum client_report_reason reason,
		 uint64_t n)
{
	reports_count(&o->to.reports, kind, reason, n);
}

/* The end of s, which the server is told of. */
static void lose(struct outbox *o, struct sending *s, enum discard reason)
{
	outbox_lost(o, package_kind(&s->package), discard_report(reason), 1);
	o->done(s, reason);
}

static bool keep(struct outbox *o, struct sending *s)
{
	if (!spooled_keep(&o->spooled, &s->package, s->chunk_id))
		return false;
	o->done(s, SHIP_SPOOLED);
	return true;
}

static void keep_queue(struct outbox *o)
{
	while (o->waiting.n > 0) {
		struct sending *s = waiting_take(&o->waiting);

		if (keep(o, s))
			continue;
		waiting_put_back(&o->waiting, s);
		return;
	}
}

/* It is the oldest, and there is no room for it. */
static void drop(struct outbox *o, struct sending *s)
{
	if (keep(o, s))
		return;
	if (o->to.is_spotlight)
		log_debug("chunk %s was dropped: it is too slow", s->chunk_id);
	else
		log_warning("chunk %s was dropped: the server is too slow", s->chunk_id);
	lose(o, s, DISCARD_QUEUE_OVERFLOW);
}

void outbox_probe(struct outbox *o, outbox_probed_fn probed)
{
	o->probed = probed;
}

void outbox_add(struct outbox *o, struct sending *s)
{
	/* A process before this one has put it there, and could not say so. */
	if (spooled_has(&o->spooled, s->chunk_id)) {
		o->done(s, SHIP_SPOOLED);
		return;
	}
	while (!waiting_has_room(&o->waiting, s) && o->waiting.n > 0)
		drop(o, waiting_take(&o->waiting));
	waiting_add(&o->waiting, s);
}

static void give_back(struct outbox *o)
{
	buf_fini(&o->body);
	reports_failed(&o->to.reports);
}

/* The body is there. After an error it is not any more. */
static int post_body(struct outbox *o)
{
	int r = transport_set_target(o->transport, &o->to.dsn, o->to.compression);

	destination_posts(&o->to);
	if (r == 0)
		r = transport_post(o->transport, o->body.data, o->body.len);
	if (r < 0)
		give_back(o);
	return r;
}

static int post(struct outbox *o, const struct package *package, const struct reports_item *report)
{
	struct package sent = *package;
	int r;

	sent.compression = o->to.compression;
	r = package_compress(&sent, (int64_t)(clock_wall_ns() / NS_PER_US), report, &o->body);
	if (r < 0) {
		give_back(o);
		return r;
	}
	return post_body(o);
}

static bool is_busy(const struct outbox *o)
{
	return o->current != NULL || o->spooled.given || o->alone != ALONE_NOTHING;
}

static bool is_limited(const struct outbox *o, const struct package *p)
{
	return destination_limit_ns(&o->to, package_kind(p)) > clock_boot_ns();
}

/* Starts to send the next of the queue that may be sent. */
static void send_queued(struct outbox *o)
{
	while (!is_busy(o) && o->waiting.n > 0) {
		struct sending *s = waiting_take(&o->waiting);
		int r;

		if (!o->to.has_dsn) {
			o->done(s, SHIP_NOTHING);
			continue;
		}
		if (is_limited(o, &s->package)) {
			log_debug("chunk %s is not sent: rate limit", s->chunk_id);
			lose(o, s, DISCARD_RATE_LIMITED);
			continue;
		}
		r = post(o, &s->package,
			 destination_report(&o->to, reports_ride_ns(&o->to.reports)));
		if (r < 0) {
			log_warning("chunk %s was not sent: %s", s->chunk_id, strerror(-r));
			lose(o, s, DISCARD_MEMORY);
			continue;
		}
		o->current = s;
	}
}

static void send_spooled(struct outbox *o, enum envelope_kind kind)
{
	const struct reports_item *report =
		destination_report(&o->to, reports_ride_ns(&o->to.reports));

	if (!spooled_give(&o->spooled, kind, o->to.compression, report, &o->body))
		reports_failed(&o->to.reports);
	else if (post_body(o) < 0)
		spooled_answered(&o->spooled, VERDICT_NONE);
}

static void send_alone(struct outbox *o, enum outbox_alone what, const struct reports_item *report)
{
	struct package alone = {
		.sdk_name = SDK_NAME,
		.sdk_version = SDK_VERSION,
		.payload_fd = -1,
	};

	random_bytes(alone.event_id, sizeof(alone.event_id));
	if (post(o, &alone, report) == 0)
		o->alone = what;
}

static void send_report(struct outbox *o)
{
	const struct reports_item *report = destination_report(&o->to, 0);

	o->last_due = false;
	if (report != NULL)
		send_alone(o, ALONE_REPORT, report);
}

static void end_probe(struct outbox *o, const struct transport_answer *answer)
{
	const outbox_probed_fn probed = o->probed;

	o->probed = NULL;
	probed(answer);
}

/* A report of nothing: the server checks the key, and shows and counts none. */
static void send_probe(struct outbox *o)
{
	static const struct client_report nothing;
	struct reports_item report;

	if (ratelimit_until(&o->to.limits, RATELIMIT_ALL) > clock_boot_ns()) {
		end_probe(o, &(struct transport_answer){.status = 429});
		return;
	}
	if (reports_make(&nothing, (int64_t)(clock_wall_ns() / NS_PER_SEC), &report) == 0)
		send_alone(o, ALONE_PROBE, &report);
	if (o->alone != ALONE_PROBE)
		end_probe(o, &(struct transport_answer){.error = "no memory for a request"});
}

/* There was no answer: it waits. */
static void put_back(struct outbox *o, struct sending *s)
{
	if (keep(o, s))
		return;
	if (o->to.is_spotlight && s->was_tried) {
		log_debug("chunk %s was dropped: no answer", s->chunk_id);
		lose(o, s, DISCARD_NETWORK_ERROR);
		return;
	}
	s->was_tried = true;
	if (waiting_has_room(&o->waiting, s))
		waiting_put_back(&o->waiting, s);
	else
		drop(o, s);
}

static void settle(struct outbox *o, struct sending *s, enum verdict verdict)
{
	switch (verdict) {
	case VERDICT_NONE:
		put_back(o, s);
		return;
	case VERDICT_TAKEN:
		o->done(s, SHIP_DONE);
		return;
	case VERDICT_LIMITED:
		/* The server counts it. */
		o->done(s, DISCARD_RATE_LIMITED);
		return;
	case VERDICT_REFUSED:
		lose(o, s, DISCARD_SEND_ERROR);
		return;
	}
}

static void tell_verdict(const struct outbox *o, enum verdict verdict, int status)
{
	char chunk[sizeof("chunk ") + MSG_ID_SIZE];

	if (o->current != NULL)
		(void)snprintf(chunk, sizeof(chunk), "chunk %s", o->current->chunk_id);
	verdict_tell(verdict,
		     o->current != NULL		? chunk
		     : o->alone == ALONE_REPORT ? "a report of what was lost"
		     : o->alone == ALONE_PROBE	? "a probe of the server"
						: "a chunk of the spool",
		     status);
}

static void take_answer(struct outbox *o, const struct transport_answer *a)
{
	const enum verdict verdict = destination_take(&o->to, a);
	const enum outbox_alone alone = o->alone;
	struct sending *s = o->current;

	buf_fini(&o->body);
	if (a->status != 0)
		tell_verdict(o, verdict, a->status);
	if (verdict != VERDICT_NONE)
		spooled_hurry(&o->spooled);
	o->current = NULL;
	o->alone = ALONE_NOTHING;
	if (alone == ALONE_PROBE)
		end_probe(o, a);
	else if (s != NULL)
		settle(o, s, verdict);
	else if (alone == ALONE_NOTHING)
		spooled_answered(&o->spooled, verdict);
}

/* The time is up: to the disk, or nowhere. */
static void give_up(struct outbox *o)
{
	if (is_busy(o)) {
		const struct transport_answer none = {.error = "time is up"};

		transport_abort(o->transport);
		take_answer(o, &none);
	}
	spooled_ask_again(&o->spooled);
	keep_queue(o);
	o->unsent += o->waiting.n;
	while (o->waiting.n > 0)
		lose(o, waiting_take(&o->waiting), DISCARD_NETWORK_ERROR);
}

/* In vain: the server will not be asked again before the time is up. */
static bool is_over(const struct outbox *o)
{
	return o->finish_ns != 0 && (clock_boot_ns() >= o->finish_ns ||
				     (!is_busy(o) && destination_rests(&o->to, o->finish_ns)));
}

static uint64_t spool_due_ns(const struct outbox *o, enum envelope_kind kind)
{
	if (!o->to.has_dsn || o->finish_ns != 0)
		return UINT64_MAX;
	return max_u64(spooled_due_ns(&o->spooled, kind), destination_limit_ns(&o->to, kind));
}

/* The last one does not wait for its time, nor for a server that is silent. */
static uint64_t report_due_ns(const struct outbox *o)
{
	const struct destination *to = &o->to;
	uint64_t due_ns = reports_alone_ns(&to->reports);

	if (!to->has_dsn || to->is_silent || (o->finish_ns != 0 && !o->last_due))
		return UINT64_MAX;
	if (o->last_due)
		due_ns = reports_any(&to->reports) && to->backoff.failures == 0 ? 0 : UINT64_MAX;
	return max_u64(due_ns, ratelimit_until(&to->limits, RATELIMIT_ALL));
}

/* What is not of the queue. */
static bool may_send(const struct outbox *o)
{
	return !is_busy(o) && o->waiting.n == 0 && !destination_rests(&o->to, clock_boot_ns());
}

void outbox_step(struct outbox *o)
{
	struct transport_answer answer;

	if (transport_step(o->transport, &answer) > 0)
		take_answer(o, &answer);
	spooled_check(&o->spooled);
	if (o->probed != NULL && !is_busy(o))
		send_probe(o);
	if (is_over(o))
		give_up(o);
	else if (destination_rests(&o->to, clock_boot_ns()))
		keep_queue(o);
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

	if (!is_busy(o)) {
		due_ns = report_due_ns(o);
		for (int i = 0; i < ENVELOPE_KIND_N; i++)
			due_ns = min_u64(due_ns, spool_due_ns(o, (enum envelope_kind)i));
		if (o->waiting.n > 0)
			due_ns = now_ns;
		if (o->to.backoff.failures > 0)
			due_ns = max_u64(due_ns, o->to.backoff.until_ns);
	}
	if (o->finish_ns != 0 && !outbox_is_empty(o))
		due_ns = min_u64(due_ns, o->finish_ns);
	if (due_ns == UINT64_MAX)
		return -1;
	if (due_ns <= now_ns)
		return 0;
	return (int)min_u64((due_ns - now_ns) / NS_PER_MS + 1, INT32_MAX);
}

void outbox_finish(struct outbox *o, uint64_t timeout_ns)
{
	const uint64_t finish_ns = clock_boot_ns() + timeout_ns;

	if (o->finish_ns == 0 || finish_ns < o->finish_ns)
		o->finish_ns = finish_ns;
}

void outbox_end(struct outbox *o, uint64_t timeout_ns)
{
	o->last_due = true;
	if (o->waiting.n == 0 && o->current == NULL)
		o->finish_ns = clock_boot_ns() + timeout_ns;
}

/* One that can be sent in time. */
static bool report_waits(const struct outbox *o)
{
	return o->alone == ALONE_REPORT || (o->last_due && report_due_ns(o) < o->finish_ns);
}

bool outbox_is_empty(const struct outbox *o)
{
	return o->waiting.n == 0 && o->current == NULL && !report_waits(o);
}
