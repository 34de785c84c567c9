#include "daemon/outbox.h"

#include <string.h>

#include "daemon/log.h"
#include "lib/base/clock.h"
#include "proto/chunk_v2.h"

/* Incompressible bytes become a little more by compression. */
#define BODY_BYTES_MAX (CHUNK_V2_SIZE_MAX + (1u << 20))

void outbox_init(struct outbox *o, struct transport *transport, outbox_fn done)
{
	*o = (struct outbox){.transport = transport, .done = done};
	buf_init(&o->body, BODY_BYTES_MAX);
	ratelimit_init(&o->limits);
}

void outbox_set_dsn(struct outbox *o, const struct dsn *dsn)
{
	o->has_dsn = dsn != NULL;
	if (dsn != NULL)
		o->dsn = *dsn;
	/* Limits are the other place's. */
	ratelimit_init(&o->limits);
}

static struct sending *queue_take(struct outbox *o)
{
	struct sending *s = o->queue[0];

	o->n_queue--;
	o->queue_bytes -= s->package.payload_size;
	memmove(o->queue, o->queue + 1, o->n_queue * sizeof(o->queue[0]));
	return s;
}

void outbox_add(struct outbox *o, struct sending *s)
{
	while (o->n_queue == OUTBOX_MAX ||
	       o->queue_bytes + s->package.payload_size > OUTBOX_BYTES_MAX) {
		struct sending *oldest = queue_take(o);

		log_warning("chunk %s was dropped: the server is too slow",
			    oldest->chunk_id);
		o->done(oldest, SHIP_QUEUE_OVERFLOW);
	}
	o->queue[o->n_queue++] = s;
	o->queue_bytes += s->package.payload_size;
}

static int post(struct outbox *o, const struct sending *s)
{
	int r;

	r = package_compress(&s->package,
			     (int64_t)(clock_wall_ns() / NS_PER_US), &o->body);
	if (r == 0)
		r = transport_set_target(o->transport, &o->dsn);
	if (r == 0)
		r = transport_post(o->transport, o->body.data, o->body.len);
	if (r < 0)
		buf_fini(&o->body);
	return r;
}

/* Starts to send the next of the queue that may be sent. */
static void send_next(struct outbox *o)
{
	while (o->current == NULL && o->n_queue > 0) {
		struct sending *s = queue_take(o);
		int r;

		if (!o->has_dsn) {
			o->done(s, SHIP_NOTHING);
			continue;
		}
		if (ratelimit_active(&o->limits, RATELIMIT_PROFILE_CHUNK,
				     clock_boot_ns())) {
			log_debug("chunk %s is not sent: rate limit",
				  s->chunk_id);
			o->done(s, SHIP_RATE_LIMITED);
			continue;
		}
		r = post(o, s);
		if (r < 0) {
			log_warning("chunk %s was not sent: %s", s->chunk_id,
				    strerror(-r));
			o->done(s, SHIP_INTERNAL_ERROR);
			continue;
		}
		o->current = s;
	}
}

static void take_limits(struct outbox *o, const struct transport_answer *a)
{
	struct ratelimit_answer answer = {
		.status = a->status,
		.limits = a->rate_limits,
		.retry_after = a->retry_after,
	};
	uint64_t now_ns = clock_boot_ns();
	uint64_t before = ratelimit_until(&o->limits, RATELIMIT_PROFILE_CHUNK);
	uint64_t after;

	ratelimit_update(&o->limits, &answer, now_ns,
			 (int64_t)(clock_wall_ns() / NS_PER_SEC));
	after = ratelimit_until(&o->limits, RATELIMIT_PROFILE_CHUNK);
	if (after > before && after > now_ns)
		log_warning(
			"the server takes no profiles for %llu s",
			(unsigned long long)((after - now_ns) / NS_PER_SEC));
}

static enum ship_result judge(const struct transport_answer *a)
{
	if (a->status == 0)
		return SHIP_NETWORK_ERROR;
	if (a->status == 429)
		return SHIP_RATE_LIMITED;
	return a->status < 300 ? SHIP_DONE : SHIP_SEND_ERROR;
}

static void take_answer(struct outbox *o, const struct transport_answer *a)
{
	enum ship_result result = judge(a);
	struct sending *s = o->current;

	o->current = NULL;
	buf_fini(&o->body);
	if (a->status == 0)
		log_warning("chunk %s was not sent: %s", s->chunk_id, a->error);
	else if (result == SHIP_SEND_ERROR)
		log_warning("chunk %s was refused by the server: status %d",
			    s->chunk_id, a->status);
	else
		log_debug("chunk %s: the server answers %d", s->chunk_id,
			  a->status);
	if (a->sentry_error != NULL)
		log_debug("X-Sentry-Error: %s", a->sentry_error);
	if (a->status != 0)
		take_limits(o, a);
	o->done(s, result);
}

void outbox_step(struct outbox *o)
{
	struct transport_answer answer;

	if (transport_step(o->transport, &answer) > 0)
		take_answer(o, &answer);
	send_next(o);
}

void outbox_finish(struct outbox *o, uint64_t timeout_ns)
{
	uint64_t end_ns = clock_mono_ns() + timeout_ns;

	for (;;) {
		uint64_t now_ns = clock_mono_ns();
		bool ignored;

		outbox_step(o);
		if (o->current == NULL || now_ns >= end_ns)
			break;
		if (transport_wait(o->transport, -1,
				   (int)((end_ns - now_ns) / NS_PER_MS) + 1,
				   &ignored) < 0)
			break;
	}
	if (o->current != NULL)
		log_warning("%zu chunks were not sent: the time is up",
			    o->n_queue + 1);
	transport_abort(o->transport);
	buf_fini(&o->body);
}
