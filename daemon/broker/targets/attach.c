#include "daemon/broker/targets/attach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/broker/children/child.h"
#include "daemon/broker/children/children.h"
#include "daemon/broker/targets/crash.h"
#include "daemon/broker/targets/governor.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/broker/targets/leaks.h"
#include "daemon/broker/targets/owners.h"
#include "daemon/broker/targets/totals.h"
#include "daemon/common/log.h"
#include "daemon/common/random.h"
#include "daemon/common/shortage.h"
#include "daemon/config/config.h"
#include "daemon/msg/msg_unwind.h"
#include "daemon/process/process.h"
#include "daemon/process/refusal.h"
#include "lib/base/clock.h"

/* Interval of checks of a target that another process traces. */
#define RETRY_NS NS_PER_SEC

/*
 * Returns the length of the first chunk, random between a quarter of a chunk and a whole one.
 * Otherwise hosts that start together, or continue together after a rate limit, would send at
 * the same moments from then on.
 */
static uint64_t first_chunk_us(const struct instance *i, uint64_t chunk_us)
{
	const uint64_t least_us = chunk_us / 4;

	return i->ship->dsn[0] != '\0' ? least_us + random_below(chunk_us - least_us + 1)
				       : chunk_us;
}

/* docs/FORMATS.md has the reasons for the choice of ADDRESSES_AUTO. */
static bool has_addresses_by_function(const struct targets *ts, const struct section_config *c)
{
	switch (ts->state->options.config.addresses) {
	case ADDRESSES_EXACT:
		return false;
	case ADDRESSES_FUNCTION:
		return true;
	case ADDRESSES_AUTO:
		return strcmp(c->platform, "native") == 0 &&
		       ts->state->options.config.symbols != UNWIND_SYMBOLS_LINES &&
		       !delivery_has_files(ts->delivery);
	}
	return false;
}

static void open_session(struct targets *ts, struct target *t)
{
	const struct section_config *c = &t->instance->config;
	struct msg_session_open m = {
		.h = MSG_HEADER(MSG_SESSION_OPEN),
		.target = t->id,
		.pid = t->pid,
		.max_frames = ts->state->options.config.max_frames,
		.symbols = (uint32_t)ts->state->options.config.symbols,
		.environment_given = c->environment_given,
		.by_function = has_addresses_by_function(ts, c),
		.cpu_only = ts->state->options.config.mode == MODE_CPU,
		.chunk_us = ts->state->options.config.chunk_seconds * UINT64_C(1000000),
		.wall_offset_us = t->wall_offset_us,
		.use_pthread_self = c->thread_id_format == THREAD_ID_PTHREAD,
		.for_server = t->instance->ship->dsn[0] != '\0',
		.for_file = delivery_has_files(ts->delivery),
		.for_spotlight = ts->children->spotlight != NULL,
		.recordings_only = t->is_for_recordings,
	};

	m.first_chunk_us = first_chunk_us(t->instance, m.chunk_us);
	if (ts->state->options.transaction != NULL) {
		/* A V1 profile is one chunk: longer than any run with --transaction. */
		(void)snprintf(m.transaction, sizeof(m.transaction), "%s",
			       ts->state->options.transaction);
		m.chunk_us = m.first_chunk_us = CONFIG_CHUNK_MAX_SECONDS * UINT64_C(1000000);
	}
	if (getrandom(&m.hash_seed, sizeof(m.hash_seed), 0) < 0)
		abort();
	memcpy(m.profiler_id, t->profiler_id, sizeof(m.profiler_id));
	memcpy(m.platform, c->platform, sizeof(m.platform));
	memcpy(m.environment, c->environment, sizeof(m.environment));
	memcpy(m.release_given, c->release, sizeof(m.release_given));
	memcpy(m.release_env, ts->state->options.config.release_env, sizeof(m.release_env));
	memcpy(m.in_app_include, ts->state->options.config.in_app_include,
	       sizeof(m.in_app_include));
	memcpy(m.in_app_exclude, ts->state->options.config.in_app_exclude,
	       sizeof(m.in_app_exclude));
	child_send(&t->unwind->child, &m, sizeof(m), NULL, 0);
	t->session = SESSION_ASKED;
	t->overdue_checks = 0;
	t->unwind->sessions_asked++;
	if (t->id > t->unwind->newest_target)
		t->unwind->newest_target = t->id;
}

static void add_to_capture(struct targets *ts, struct target *t)
{
	const struct msg_target_add m = {
		.h = MSG_HEADER(MSG_TARGET_ADD),
		.target = t->id,
		.ring = t->unwind->id,
		.pid = t->pid,
		.slot = t->slot,
		.wants_thread_pointers = t->instance->config.thread_id_format == THREAD_ID_PTHREAD,
		.awaits_exec = t->pid == ts->held_pid || t->crash.awaits_exec,
		.uid = t->owner.uid,
		.files_uid = t->owner.files_uid,
		.ignored_crashes = crash_ignored(t->instance),
		.epoch_ns = ts->state->epoch_ns,
		.period_ns = ts->state->period_ns,
	};

	child_send(&ts->children->capture, &m, sizeof(m), &t->pidfd, 1);
	t->in_capture = true;
	t->capture_overdue_checks = 0;
	if (t->rate_hz != ts->state->timer_hz)
		governor_send_rate(ts, t);
}

/*
 * Another process traces the target: a debugger that attached first, or while there was no
 * capture. Until it detaches, no samples are expected.
 */
static void wait_for_tracer(struct targets *ts, struct target *t, int32_t tracer)
{
	uint64_t now = clock_mono_ns();

	if (t->retry_ns == 0)
		refusal_log_traced_now(t->pid, tracer);
	target_count_missed(ts, t, now);
	t->phase = TARGET_WAITING;
	t->retry_ns = now + RETRY_NS;
}

/*
 * Sends the next message for a target: first to unwind, since a record of a target that unwind
 * does not know breaks a rule.
 */
static void advance(struct targets *ts, struct target *t)
{
	/* Asked early, while unwind opens the session. */
	const enum leaks_verdict leaks = t->attach_due ? leaks_check(ts, t) : LEAKS_WAIT;
	int32_t tracer;
	int r;

	if (t->session == SESSION_NONE && t->unwind->child.fd >= 0 &&
	    t->unwind->sessions_asked < MSG_SESSIONS_ASKED_MAX)
		open_session(ts, t);
	if (t->session != SESSION_OPEN || !t->attach_due || ts->children->capture.fd < 0 ||
	    t->unwind->ring_due || leaks == LEAKS_WAIT ||
	    crash_is_reported(ts, t->instance->parent))
		return;
	t->attach_due = false;
	if (leaks == LEAKS_LEAVE) {
		leaks_refuse(ts, t);
		return;
	}
	tracer = process_tracer(t->pid);
	/* Capture itself already traces a child that a target has forked. */
	if (tracer != 0 && tracer != ts->children->capture.pid) {
		wait_for_tracer(ts, t, tracer);
		return;
	}
	if (t->retry_ns != 0)
		t->retry_ns = UINT64_MAX; /* the answer of capture is awaited */
	/* It was not traced meanwhile, perhaps for seconds. */
	r = owners_check(ts, t);
	if (shortage_is(-r))
		t->attach_due = true;
	if (r < 0)
		return;
	leaks_forget(t);
	add_to_capture(ts, t);
}

/*
 * Returns true if a line is to be logged, since the process has ended before capture attached: for
 * a process that a user or the command line has named, and that was never profiled. Processes of a
 * section may end at any time.
 */
static bool end_is_logged(const struct target *t)
{
	if (!instance_has_section(t->instance) && t->instance->origin != INSTANCE_CHILD)
		return !t->instance->was_attached;
	log_debug("process %d has ended before it could be attached to", t->pid);
	return false;
}

/* The run ends before it began. end_run() in instances.c decides about the instance. */
static void fail_start(struct target *t, int error)
{
	t->attach_error = error;
	if (shortage_is(error) && t->instance->origin != INSTANCE_GIVEN)
		shortage_note(error, "a process that is to be attached to");
	else if (error != ESRCH || end_is_logged(t))
		refusal_log_attach(t->pid, t->owner.uid, error);
	target_close(t);
}

void target_start(struct targets *ts, struct target *t)
{
	if (!target_is_open(t))
		return;
	if (t->unwind == NULL) {
		int r = children_get_unwind(ts->children, &t->owner, &t->unwind);

		if (r < 0) {
			fail_start(t, -r);
			return;
		}
	}
	/* In a crash check_target() decides when capture attaches again. */
	t->attach_due = t->crash.tid == 0 || t->crash.is_over;
	advance(ts, t);
}

/*
 * Returns true if the process has ended and no message will report it: capture does not know the
 * target, because there is no capture, or it has not been told or has left the process.
 */
static bool has_ended_unreported(const struct targets *ts, const struct target *t)
{
	return (!t->in_capture || ts->children->capture.fd < 0) &&
	       t->instance->life == INSTANCE_ENDED;
}

static void on_unreported_end(struct targets *ts, struct target *t)
{
	if (!t->instance->was_attached)
		t->attach_error = ESRCH;
	if (end_is_logged(t))
		refusal_log_ended(t->pid);
	t->attach_due = false;
	target_count_missed(ts, t, clock_mono_ns());
	target_close(t);
}

/* Once for each target: each scan of capture may find a few threads fewer. */
static void warn_threads_refused(const struct targets *ts, struct target *t)
{
	const struct capture_counters *now = &ts->children->heartbeat->slots[t->slot];

	if (!t->warned_threads_refused && t->phase == TARGET_PROFILED && t->capture_died_ns == 0 &&
	    now->refused > 0)
		t->warned_threads_refused =
			refusal_log_threads(t->pid, now->refused, (int)now->refused_error);
}

static void check_target(struct targets *ts, struct target *t, uint64_t now)
{
	if (t->phase == TARGET_WAITING && t->retry_ns != 0 && now >= t->retry_ns)
		t->attach_due = crash_is_over(ts, t, now);
	if (target_is_open(t) && has_ended_unreported(ts, t))
		on_unreported_end(ts, t);
	if (t->unwind != NULL && target_is_open(t))
		advance(ts, t);
	/* Capture has ended, so it will not report the end of the target. */
	if (t->phase == TARGET_STOPPING && !t->in_capture)
		target_close(t);
	warn_threads_refused(ts, t);
}

/* Returns true if the unwind process runs and has opened the sessions of all its targets. */
static bool has_opened_all_sessions(struct targets *ts, const struct unwind *u)
{
	FOR_EACH_TARGET (t, ts)
		if (t->unwind == u && target_is_open(t) && t->session != SESSION_OPEN)
			return false;
	return u->child.fd >= 0;
}

static void make_ring_if_due(struct targets *ts, struct unwind *u)
{
	int r;

	if (!u->ring_due || ts->children->capture.fd < 0 || !has_opened_all_sessions(ts, u))
		return;
	r = unwind_make_ring(ts->children, u);
	u->ring_due = r < 0;
	if (r < 0)
		shortage_note(-r, "the ring of sentry-profd-unwind");
}

void targets_check(struct targets *ts)
{
	uint64_t now = clock_mono_ns();

	if (!state_is_profiling(ts->state))
		return;
	for (size_t i = 0; i < ts->children->n_unwinds; i++)
		make_ring_if_due(ts, ts->children->unwinds[i]);
	FOR_EACH_TARGET (t, ts)
		check_target(ts, t, now);
}

static void on_attached(struct targets *ts, struct target *t)
{
	uint64_t now = clock_mono_ns();

	target_count_missed(ts, t, now);
	t->capture_died_ns = 0;
	t->retry_ns = 0;
	crash_attached(t);
	t->was_attached = true;
	t->instance->was_attached = true;
	/* The target may have ended already, if the message of unwind came first. */
	if (t->phase == TARGET_WAITING)
		t->phase = TARGET_PROFILED;
	if (ts->state->started_ns == 0 && ts->state->phase < PHASE_DELIVERING)
		ts->state->started_ns = state_now_ns(ts->state);
	log_debug("attached to process %d", t->pid);
}

static void on_refused(struct targets *ts, struct target *t, int error)
{
	int32_t tracer;

	if ((error == EPERM || error == EBUSY) &&
	    (t->phase == TARGET_PROFILED || t->phase == TARGET_WAITING)) {
		tracer = process_tracer(t->pid);
		/*
		 * EBUSY without a tracer: it has detached meanwhile, or traces only another
		 * thread.
		 */
		if (tracer != 0 || error == EBUSY) {
			wait_for_tracer(ts, t, tracer);
			return;
		}
	}
	if (t->phase == TARGET_STOPPING) {
		target_close(t);
		return;
	}
	/* Its parent crashes: it may be the crash reporter. */
	if (error == ECANCELED) {
		t->retry_ns = clock_mono_ns() + RETRY_NS;
		return;
	}
	fail_start(t, error);
}

/*
 * Returns true if RECORD_END is lost: the unwind process that should read it has died, or its
 * successor has no ring yet.
 */
static bool is_record_end_lost(const struct target *t)
{
	const struct unwind *u = t->unwind;

	return u->child.fd < 0 || t->session != SESSION_OPEN || u->ring_due || u->rings_awaited > 0;
}

void target_on_state(struct targets *ts, const struct msg_target_state *m)
{
	struct target *t = target_of(ts, m->target);

	if (t == NULL) {
		child_fail(&ts->children->capture, "names an unknown target");
		return;
	}
	if (m->state == TARGET_REFUSED || m->state == TARGET_GONE || m->state == TARGET_CRASHED)
		t->in_capture = false;
	switch ((enum target_state)m->state) {
	case TARGET_ATTACHED:
		on_attached(ts, t);
		(void)!owners_check(ts, t);
		return;
	case TARGET_OTHER_RIGHTS:
		owners_end_run(ts, t);
		return;
	case TARGET_REFUSED:
		on_refused(ts, t, m->error);
		return;
	case TARGET_GONE:
		log_debug(t->phase == TARGET_STOPPING ? "detached from process %d"
						      : "process %d has ended",
			  t->pid);
		if (t->phase != TARGET_PROFILED && t->phase != TARGET_STOPPING)
			return;
		if (is_record_end_lost(t))
			target_close(t);
		else
			target_begins_to_close(t, TARGET_CLOSING);
		t->overdue_checks = 0;
		return;
	case TARGET_EXEC:
		log_debug("process %d runs a new program", t->pid);
		crash_forget(t->instance);
		(void)!owners_check(ts, t);
		return;
	case TARGET_CRASHED:
		if (t->phase == TARGET_STOPPING)
			target_close(t);
		else if (target_is_open(t))
			crash_on_left(ts, t, m);
		return;
	case TARGET_CRASHES_TRACED:
		crash_on_traced(t, m);
		return;
	}
	child_fail(&ts->children->capture, "sends an unknown state");
}

void target_stop(struct targets *ts, struct target *t)
{
	if (!target_is_open(t))
		return;
	target_count_missed(ts, t, clock_mono_ns());
	t->attach_due = false;
	if (!t->in_capture) {
		target_close(t);
		return;
	}
	target_begins_to_close(t, TARGET_STOPPING);
	t->capture_overdue_checks = 0;
	child_send_id(&ts->children->capture, MSG_TARGET_REMOVE, t->id);
}

void targets_close(struct targets *ts)
{
	uint64_t now = clock_mono_ns();

	FOR_EACH_TARGET (t, ts) {
		target_count_missed(ts, t, now);
		target_close(t);
	}
}

void target_retire(struct target *t)
{
	struct instance *i = t->instance;
	struct targets *ts = i->targets;
	struct run_totals totals;

	if (t->unwind != NULL && t->session == SESSION_OPEN)
		child_send_id(&t->unwind->child, MSG_SESSION_FORGET, t->id);
	totals_of_target(ts, t, &totals);
	totals_add(&i->earlier_runs, &totals);
	if (i->target == t)
		i->target = NULL;
	if (i->closed_run == t)
		i->closed_run = NULL;
	leaks_forget(t);
	close_fd(&t->statm_fd);
	t->is_retired = true;
}
