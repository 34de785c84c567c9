/*
 * What is kept of capture and unwind processes that died: their figures, and
 * what was lost with them and until others took their place.
 */
#include "daemon/broker/delivery/past.h"
#include <string.h>

#include "daemon/broker/broker.h"
#include "daemon/broker/delivery/loss.h"
#include "daemon/common/log.h"
#include "daemon/msg/discard.h"

void target_count_absence(const struct broker *b, struct target *t, uint64_t now)
{
	uint64_t ticks;

	if (t->phase != TARGET_PROFILED || t->dead_ns == 0 || now < t->dead_ns)
		return;
	ticks = (now - t->dead_ns) / b->period_ns;
	t->past.ticks += ticks;
	t->past.expected += ticks * t->dead_threads;
	t->missed_no_capture += ticks * t->dead_threads;
}

static uint64_t accounted(const struct capture_counters *c)
{
	uint64_t n = c->captured + c->repeated + c->filled;

	for (size_t i = 0; i < MISSED_N; i++)
		n += c->missed[i];
	return n;
}

/* Out of its page, also those of a target that has ended. */
static void keep_counters(const struct broker *b, struct target *t)
{
	/* A copy: a capture that hangs is not dead yet. */
	const struct capture_counters now = b->heartbeat->slots[t->slot];

	if (!t->attached_once || t->dead_ns != 0)
		return;
	t->dead_ns = max_u64(b->heartbeat->beat.time_ns, b->capture.started_ns);
	t->dead_threads = now.threads;
	if (now.expected > accounted(&now))
		t->missed_no_capture += now.expected - accounted(&now);
	counters_add(&t->past, &now);
}

void targets_capture_died(struct broker *b, uint32_t hung_target)
{
	FOR_EACH_TARGET (t, b) {
		keep_counters(b, t);
		/* 0: it is gone for good, and says nothing any more. */
		if (hung_target == 0)
			t->in_capture = false;
		if (t->id != hung_target ||
		    (t->phase != TARGET_WAITING && t->phase != TARGET_PROFILED))
			continue;
		t->left_out = true;
		log_error("process %d makes reads of its memory hang: it is "
			  "left out",
			  t->pid);
		target_close(t);
	}
}

void targets_resumed(struct broker *b, uint64_t now_ns)
{
	FOR_EACH_TARGET (t, b)
		if (t->dead_ns != 0)
			t->dead_ns = now_ns;
}

void targets_unwind_died(struct broker *b, struct unwind *u)
{
	files_forget(b->files, &u->child);
	u->sessions_asked = 0;
	u->measures_asked = false;
	FOR_EACH_TARGET (t, b) {
		if (t->unwind != u)
			continue;
		figures_add_counts(&t->unwind_past, &t->unwind_now, sizeof(t->unwind_now));
		memset(&t->unwind_now, 0, sizeof(t->unwind_now));
		/* The chunk that it was making, if it got that far. */
		if (t->attached_once && t->session == SESSION_OPEN && !u->ring_due &&
		    t->phase != TARGET_CLOSED) {
			t->instance->past.chunks.made++;
			loss_count(t->instance, t->instance->ship, DISCARD_UNWIND_DIED);
		}
		t->session = SESSION_NONE;
		/* There is nobody left to make its last chunk. */
		if (t->phase == TARGET_CLOSING || b->phase >= BROKER_STOPS)
			t->phase = TARGET_CLOSED;
	}
}

static void add_spool(struct spool_counts *sum, const struct spool_counts *more)
{
	figures_add_counts(sum, more, sizeof(*sum));
}

void past_spool(const struct broker *b, struct spool_counts *ret)
{
	*ret = b->spool_gone;
	for (size_t i = 0; i < b->n_ships; i++) {
		add_spool(ret, &b->ships[i]->spool_past);
		add_spool(ret, &b->ships[i]->spool_now);
	}
}

void past_ship_died(struct ship *s)
{
	/* Of the moment; the others add up. */
	const struct spool_counts now = {
		.count = s->spool_now.count,
		.bytes = s->spool_now.bytes,
	};

	s->spool_now.count = 0;
	s->spool_now.bytes = 0;
	add_spool(&s->spool_past, &s->spool_now);
	s->spool_now = now;
}

/* What waits on the disk is no figure of a process any more. */
void past_ship_gone(struct broker *b, const struct ship *s)
{
	add_spool(&b->spool_gone, &s->spool_past);
	add_spool(&b->spool_gone, &s->spool_now);
	b->spool_gone.count = 0;
	b->spool_gone.bytes = 0;
}
