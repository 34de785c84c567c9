#include "daemon/broker/targets/totals.h"

#include <string.h>

#include "daemon/broker/state/counts.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/msg/discard.h"
#include "daemon/common/log.h"

void target_count_absence(const struct targets *ts, struct target *t, uint64_t now)
{
	uint64_t ticks;

	if (t->phase != TARGET_PROFILED || t->dead_ns == 0 || now < t->dead_ns)
		return;
	ticks = (now - t->dead_ns) / ts->state->period_ns;
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

/* Adds the counters in capture's page to those of the target, also if the target has ended. */
static void keep_counters(const struct targets *ts, struct target *t)
{
	/* A copy, because a capture that hangs may still write. */
	const struct capture_counters now = ts->children->heartbeat->slots[t->slot];

	if (!t->attached_once || t->dead_ns != 0)
		return;
	t->dead_ns =
		max_u64(ts->children->heartbeat->beat.time_ns, ts->children->capture.started_ns);
	t->dead_threads = now.threads;
	if (now.expected > accounted(&now))
		t->missed_no_capture += now.expected - accounted(&now);
	counters_add(&t->past, &now);
}

void targets_capture_died(struct targets *ts, uint32_t hung_target)
{
	FOR_EACH_TARGET (t, ts) {
		keep_counters(ts, t);
		/* 0: capture has ended and will report nothing. */
		if (hung_target == 0)
			t->in_capture = false;
		if (t->id != hung_target ||
		    (t->phase != TARGET_WAITING && t->phase != TARGET_PROFILED))
			continue;
		t->left_out = true;
		log_error("reading the memory of process %d hangs: the process is no longer "
			  "profiled",
			  t->pid);
		target_close(t);
	}
}

void targets_resumed(struct targets *ts, uint64_t now_ns)
{
	FOR_EACH_TARGET (t, ts)
		if (t->dead_ns != 0)
			t->dead_ns = now_ns;
}

void targets_unwind_died(struct targets *ts, struct unwind *u)
{
	u->sessions_asked = 0;
	u->usage_unanswered = false;
	FOR_EACH_TARGET (t, ts) {
		if (t->unwind != u)
			continue;
		counts_add(&t->unwind_past, &t->unwind_now, sizeof(t->unwind_now));
		memset(&t->unwind_now, 0, sizeof(t->unwind_now));
		/* The chunk that it was making, if there was one. */
		if (t->attached_once && t->session == SESSION_OPEN && !u->ring_due &&
		    t->phase != TARGET_CLOSED) {
			t->instance->delivery.chunks.made++;
			delivery_lost(&t->instance->delivery, t->instance->ship,
				      DISCARD_UNWIND_DIED);
		}
		t->session = SESSION_NONE;
		/* No unwind process will make the last chunk. */
		if (t->phase == TARGET_CLOSING || ts->state->phase >= PHASE_STOPS)
			t->phase = TARGET_CLOSED;
	}
}
