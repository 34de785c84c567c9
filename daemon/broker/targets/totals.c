#include "daemon/broker/targets/totals.h"

#include <string.h>

#include "daemon/broker/children/watch.h"
#include "daemon/broker/state/counts.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/broker/targets/rates.h"
#include "daemon/common/log.h"
#include "daemon/msg/discard.h"

/* Returns the number of ticks that the run has in this time. A withheld run has the lowest rate. */
static uint64_t ticks_in(const struct run *run, uint64_t ns)
{
	const uint32_t hz = run_is_withheld(run) ? rates_least_hz(run->full_hz) : run->rate_hz;

	return ns / NS_PER_US * hz / (NS_PER_SEC / NS_PER_US);
}

void totals_count_missed(struct run *run, uint64_t now)
{
	uint64_t ticks, n;

	if ((run->phase != RUN_PROFILED && run->crash.tid == 0) || run->no_capture_since_ns == 0 ||
	    now < run->no_capture_since_ns)
		return;
	ticks = ticks_in(run, now - run->no_capture_since_ns);
	n = ticks * run->no_capture_threads;
	run->capture_past.ticks += ticks;
	run->capture_past.expected += n;
	if (run->crash.tid != 0)
		run->capture_past.missed[MISSED_CRASH] += n;
	else
		run->missed_no_capture += n;
	run->no_capture_since_ns = now;
}

/*
 * Counts the samples that were taken or missed. Returns false if there are more than were expected:
 * capture was taken over, and its counters are nonsense.
 */
static bool count_samples(const struct capture_counters *c, uint64_t *ret)
{
	const uint64_t taken[] = {c->captured, c->repeated, c->filled};
	uint64_t left = c->expected;

	for (size_t i = 0; i < array_size(taken) + MISSED_N; i++) {
		const uint64_t n =
			i < array_size(taken) ? taken[i] : c->missed[i - array_size(taken)];

		if (n > left)
			return false;
		left -= n;
	}
	*ret = c->expected - left;
	return true;
}

/*
 * Adds the counters in capture's page to those of the run, also if its process has ended. Capture
 * has taken no samples since since_ns. Samples that were under way are added to *missed. Counters
 * that are nonsense are dropped, with all that they count.
 */
static void keep_capture_counters(const struct targets *ts, struct run *run, uint64_t since_ns,
				  uint64_t *missed)
{
	/* A copy, because a capture that hangs may still write. */
	const struct capture_counters now = ts->children->heartbeat->slots[run->slot];
	uint64_t counted;

	if (!run->was_attached || run->no_capture_since_ns != 0)
		return;
	run->no_capture_since_ns = since_ns;
	run->no_capture_threads = now.threads;
	if (!count_samples(&now, &counted)) {
		log_warning("process %d: the counters of sentry-profd-capture do not add up: the "
			    "samples since it attached are missing in the statistics; please "
			    "report this",
			    run->pid);
		run->no_capture_threads = 0;
		return;
	}
	*missed += now.expected - counted;
	counters_add(&run->capture_past, &now);
}

void totals_left_in_crash(const struct targets *ts, struct run *run, uint64_t now_ns)
{
	keep_capture_counters(ts, run, now_ns, &run->capture_past.missed[MISSED_CRASH]);
}

void totals_capture_died(struct targets *ts, uint32_t hung_target)
{
	const uint64_t died_ns =
		max_u64(watch_beat_ns(ts->children), ts->children->capture.started_ns);

	FOR_EACH_RUN (run, ts) {
		keep_capture_counters(ts, run, died_ns, &run->missed_no_capture);
		/* 0: capture has ended and will report nothing. */
		if (hung_target == 0)
			run->in_capture = false;
		if (run->id != hung_target ||
		    (run->phase != RUN_WAITING && run->phase != RUN_PROFILED))
			continue;
		run->left_out = true;
		log_error("reading the memory of process %d hangs: the process is no longer "
			  "profiled",
			  run->pid);
		run_close(run);
	}
}

void totals_suspension_ended(struct targets *ts, uint64_t now_ns)
{
	FOR_EACH_RUN (run, ts)
		if (run->no_capture_since_ns != 0)
			run->no_capture_since_ns = now_ns;
}

void totals_unwind_died(struct targets *ts, struct unwind *u)
{
	u->sessions_asked = 0;
	u->usage_unanswered = false;
	FOR_EACH_RUN (run, ts) {
		if (run->unwind != u)
			continue;
		counts_add(&run->unwind_past, &run->unwind_now, sizeof(run->unwind_now));
		memset(&run->unwind_now, 0, sizeof(run->unwind_now));
		/* The chunk that it was making, if there was one. */
		if (run->was_attached && !run->is_for_recordings && run->session == SESSION_OPEN &&
		    !u->ring_due && run->phase != RUN_CLOSED) {
			run->instance->delivery.chunks.made++;
			delivery_lost(&run->instance->delivery, run->instance->ship,
				      DISCARD_UNWIND_DIED);
		}
		run->session = SESSION_NONE;
		/* No unwind process will make the last chunk. */
		if (run->phase == RUN_CLOSING || ts->state->phase >= PHASE_STOPPING)
			run->phase = RUN_CLOSED;
	}
}

void totals_capture(const struct targets *ts, const struct run *run, struct capture_counters *ret)
{
	struct capture_counters now;
	uint64_t counted;

	*ret = run->capture_past;
	/* The counters of a dead capture were added to capture_past when it died. */
	if (run->no_capture_since_ns != 0 || !run->was_attached || ts->children->heartbeat == NULL)
		return;
	now = ts->children->heartbeat->slots[run->slot];
	/* While capture writes, a copy may have new counters beside old ones. */
	if (run->in_capture || count_samples(&now, &counted))
		counters_add(ret, &now);
}

uint64_t totals_threads(const struct targets *ts, const struct run *run)
{
	if (run->no_capture_since_ns != 0)
		return run->no_capture_threads;
	if (!run->was_attached || ts->children->heartbeat == NULL)
		return 0;
	return ts->children->heartbeat->slots[run->slot].threads;
}

void totals_of_run(const struct targets *ts, const struct run *run, struct run_totals *ret)
{
	memset(ret, 0, sizeof(*ret));
	totals_capture(ts, run, &ret->capture);
	ret->missed_no_capture = run->missed_no_capture;
	ret->unwind = run->unwind_past;
	counts_add(&ret->unwind, &run->unwind_now, sizeof(ret->unwind));
	ret->lowest_hz = run->governed.lowest_hz;
	ret->lowered_ns = run->governed.lowered_ns;
	ret->exceeded_ns = run->governed.exceeded_ns;
}

void totals_add(struct run_totals *sum, const struct run_totals *more)
{
	counters_add(&sum->capture, &more->capture);
	sum->missed_no_capture += more->missed_no_capture;
	counts_add(&sum->unwind, &more->unwind, sizeof(sum->unwind));
	counts_add(&sum->chunks, &more->chunks, sizeof(sum->chunks));
	sum->payload_bytes += more->payload_bytes;
	sum->crashes_left += more->crashes_left;
	sum->crashes_traced += more->crashes_traced;
	sum->rights_changes += more->rights_changes;
	sum->rights_unsampled_ns += more->rights_unsampled_ns;
	if (sum->lowest_hz == 0 || (more->lowest_hz != 0 && more->lowest_hz < sum->lowest_hz))
		sum->lowest_hz = more->lowest_hz;
	sum->lowered_ns = max_u64(sum->lowered_ns, more->lowered_ns);
	sum->exceeded_ns = max_u64(sum->exceeded_ns, more->exceeded_ns);
}

void totals_of_instance(const struct targets *ts, const struct instance *i, struct run_totals *ret)
{
	const struct run *const runs[] = {i->run, i->closed_run};
	struct run_totals one;

	*ret = i->earlier_runs;
	counts_add(&ret->chunks, &i->delivery.chunks, sizeof(ret->chunks));
	ret->payload_bytes += i->delivery.payload_bytes;
	ret->crashes_left = i->crashes.left;
	ret->crashes_traced = i->crashes.traced;
	ret->rights_changes = i->owner_changes;
	ret->rights_unsampled_ns = instance_unsampled_ns(i);
	for (size_t k = 0; k < array_size(runs); k++) {
		if (runs[k] == NULL)
			continue;
		totals_of_run(ts, runs[k], &one);
		totals_add(ret, &one);
	}
}

static uint64_t sum_of(const uint64_t *v, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i];
	return sum;
}

uint64_t totals_taken(const struct run_totals *totals)
{
	const struct capture_counters *c = &totals->capture;

	return c->captured + c->repeated + c->filled;
}

uint64_t totals_missed(const struct run_totals *totals)
{
	return totals->missed_no_capture + sum_of(totals->capture.missed, MISSED_N);
}

uint64_t totals_discarded(const struct run_totals *totals)
{
	return sum_of(totals->chunks.discarded, DISCARD_REASONS_MAX);
}

void totals_of_all(const struct targets *ts, struct run_totals *ret)
{
	struct run_totals one;

	*ret = ts->gone;
	for (size_t i = 0; i < ts->n_instances; i++) {
		totals_of_instance(ts, ts->instances[i], &one);
		totals_add(ret, &one);
	}
}
