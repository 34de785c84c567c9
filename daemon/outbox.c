#include "daemon/outbox.h"

#include <string.h>

#include "daemon/chance.h"
#include "daemon/log.h"
#include "lib/base/clock.h"

void outbox_init(struct outbox *o, struct transport *transport, outbox_fn done)
{
	*o = (struct outbox){.transport = transport, .done = done};
	buf_init(&o->body, OUTBOX_BODY_MAX);
	ratelimit_init(&o->limits);
	spooled_init(&o->spooled);
}

void outbox_fini(struct outbox *o)
{
	transport_abort(o->transport);
	buf_fini(&o->body);
	spooled_fini(&o->spooled);
}

void outbox_set_dsn(struct outbox *o, const struct dsn *dsn,
		    uint64_t limited_until_ns)
{
	o->has_dsn = dsn != NULL;
	if (dsn != NULL) {
		o->dsn = *dsn;
		spooled_set_dsn(&o->spooled, dsn);
	}
	/* Limits are the other place's, and so is its silence. */
	ratelimit_init(&o->limits);
	ratelimit_extend(&o->limits, RATELIMIT_PROFILE_CHUNK, limited_until_ns);
	o->limited_told_ns = limited_until_ns;
	backoff_succeeded(&o->backoff);
}

static struct sending *queue_take(struct outbox *o)
{
	struct sending *s = o->queue[0];

	o->n_queue--;
	o->queue_bytes -= s->package.payload_size;
	memmove(o->queue, o->queue + 1, o->n_queue * sizeof(o->queue[0]));
	return s;
}

static bool has_room(const struct outbox *o, const struct sending *s)
{
	return o->n_queue < OUTBOX_MAX &&
	       o->queue_bytes + s->package.payload_size <= OUTBOX_BYTES_MAX;
}

static void queue_put(struct outbox *o, size_t at, struct sending *s)
{
	memmove(o->queue + at + 1, o->queue + at,
		(o->n_queue - at) * sizeof(o->queue[0]));
	o->queue[at] = s;
	o->n_queue++;
	o->queue_bytes += s->package.payload_size;
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
	while (o->n_queue > 0 && keep(o, o->queue[0]))
		(void)queue_take(o);
}

/* It is the oldest, and there is no room for it. */
static void drop(struct outbox *o, struct sending *s)
{
	if (keep(o, s))
		return;
	log_warning("chunk %s was dropped: the server is too slow",
		    s->chunk_id);
	o->done(s, SHIP_QUEUE_OVERFLOW);
}

void outbox_add(struct outbox *o, struct sending *s)
{
	/* A process before this one has put it there, and could not say so. */
	if (spooled_has(&o->spooled, s->chunk_id)) {
		o->done(s, SHIP_SPOOLED);
		return;
	}
	while (!has_room(o, s) && o->n_queue > 0)
		drop(o, queue_take(o));
	queue_put(o, o->n_queue, s);
}

/* The body is there. */
static int post_body(struct outbox *o)
{
	int r = transport_set_target(o->transport, &o->dsn);

	return r < 0 ? r
		     : transport_post(o->transport, o->body.data, o->body.len);
}

static int post(struct outbox *o, const struct sending *s)
{
	int r;

	r = package_compress(&s->package,
			     (int64_t)(clock_wall_ns() / NS_PER_US), &o->body);
	if (r == 0)
		r = post_body(o);
	if (r < 0)
		buf_fini(&o->body);
	return r;
}

static bool is_busy(const struct outbox *o)
{
	return o->current != NULL || o->spooled.given;
}

/* Starts to send the next of the queue that may be sent. */
static void send_queued(struct outbox *o)
{
	while (!is_busy(o) && o->n_queue > 0) {
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

static void send_spooled(struct outbox *o)
{
	if (!spooled_give(&o->spooled, &o->body))
		return;
	if (post_body(o) < 0) {
		buf_fini(&o->body);
		spooled_answered(&o->spooled, 0);
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
		log_debug("the server takes no profiles for %llu s",
			  (unsigned long long)((after - now_ns) / NS_PER_SEC));
}

/* Said once, until it answers. */
static void no_answer(struct outbox *o, const char *why)
{
	const uint64_t now_ns = clock_boot_ns();

	if (o->backoff.failures == 0)
		log_warning("the server does not answer: %s", why);
	backoff_failed(&o->backoff, now_ns, chance_number());
	log_debug("%s: the server is tried again in %.1f s", why,
		  (double)(o->backoff.until_ns - now_ns) / 1e9);
}

static void take_status(struct outbox *o, const struct transport_answer *a)
{
	if (o->backoff.failures > 0)
		log_warning("the server answers again");
	backoff_succeeded(&o->backoff);
	spooled_hurry(&o->spooled);
	if (a->sentry_error != NULL)
		log_debug("X-Sentry-Error: %s", a->sentry_error);
	take_limits(o, a);
}

static enum ship_result judge(int status)
{
	if (status == 429)
		return SHIP_RATE_LIMITED;
	return status < 300 ? SHIP_DONE : SHIP_SEND_ERROR;
}

static void tell(const char *what, int status)
{
	if (judge(status) == SHIP_SEND_ERROR)
		log_warning("chunk %s was refused by the server: status %d",
			    what, status);
	else
		log_debug("chunk %s: the server answers %d", what, status);
}

/* There was no answer: it waits. */
static void put_back(struct outbox *o, struct sending *s)
{
	if (keep(o, s))
		return;
	if (has_room(o, s))
		queue_put(o, 0, s);
	else
		drop(o, s);
}

static void take_answer(struct outbox *o, const struct transport_answer *a)
{
	struct sending *s = o->current;

	o->current = NULL;
	buf_fini(&o->body);
	if (a->status == 0)
		no_answer(o, a->error);
	else
		tell(s != NULL ? s->chunk_id : "of the spool", a->status);
	if (a->status != 0)
		take_status(o, a);
	if (s == NULL)
		spooled_answered(&o->spooled, a->status);
	else if (a->status == 0)
		put_back(o, s);
	else
		o->done(s, judge(a->status));
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
	if (o->n_queue > 0)
		log_warning("%zu chunk%s not sent: the time is up", o->n_queue,
			    o->n_queue == 1 ? " was" : "s were");
	while (o->n_queue > 0)
		o->done(queue_take(o), SHIP_NETWORK_ERROR);
}

/* In vain: the server will not be asked again before the time is up. */
static bool is_over(const struct outbox *o)
{
	return o->finish_ns != 0 &&
	       (clock_boot_ns() >= o->finish_ns ||
		(!is_busy(o) && backoff_holds(&o->backoff, o->finish_ns)));
}

void outbox_step(struct outbox *o)
{
	struct transport_answer answer;

	if (transport_step(o->transport, &answer) > 0)
		take_answer(o, &answer);
	if (is_over(o))
		give_up(o);
	else if (backoff_holds(&o->backoff, clock_boot_ns()))
		keep_queue(o);
	else
		send_queued(o);
	if (!is_busy(o) && o->n_queue == 0 && outbox_wait_ms(o) == 0)
		send_spooled(o);
}

int outbox_wait_ms(const struct outbox *o)
{
	const uint64_t now_ns = clock_boot_ns();
	uint64_t due_ns = UINT64_MAX;

	if (!is_busy(o)) {
		if (o->has_dsn && o->finish_ns == 0)
			due_ns = max_u64(
				spooled_due_ns(&o->spooled),
				ratelimit_until(&o->limits,
						RATELIMIT_PROFILE_CHUNK));
		if (o->n_queue > 0)
			due_ns = now_ns;
		if (o->backoff.failures > 0)
			due_ns = max_u64(due_ns, o->backoff.until_ns);
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
	if (o->finish_ns == 0)
		o->finish_ns = clock_boot_ns() + timeout_ns;
}

bool outbox_is_empty(const struct outbox *o)
{
	return o->n_queue == 0 && o->current == NULL;
}
