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
#include "daemon/broker/targets/leak_sanitizer.h"
#include "daemon/broker/targets/owners.h"
#include "daemon/broker/targets/totals.h"
#include "daemon/common/log.h"
#include "daemon/common/random.h"
#include "daemon/common/resource_shortage.h"
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
		       (ts->state->options.config.symbols != UNWIND_SYMBOLS_LINES ||
			ts->state->options.lines_for_files) &&
		       !delivery_has_files(ts->delivery);
	}
	return false;
}

static void open_session(struct targets *ts, struct run *run)
{
	const struct section_config *c = &run->instance->config;
	struct msg_session_open m = {
		.h = MSG_HEADER(MSG_SESSION_OPEN),
		.target = run->id,
		.pid = run->pid,
		.max_frames = ts->state->options.config.max_frames,
		.symbols = (uint32_t)ts->state->options.config.symbols,
		.lines_for_files = ts->state->options.lines_for_files,
		.environment_given = c->environment_given,
		.by_function = has_addresses_by_function(ts, c),
		.cpu_only = ts->state->options.config.mode == MODE_CPU,
		.chunk_us = ts->state->options.config.chunk_seconds * UINT64_C(1000000),
		.wall_offset_us = run->profile.wall_offset_us,
		.use_pthread_self = c->thread_id_format == THREAD_ID_PTHREAD,
		.for_server = run->instance->ship->dsn[0] != '\0',
		.for_file = delivery_has_files(ts->delivery),
		.for_spotlight = ts->children->spotlight != NULL,
		.with_command_line = ts->state->options.with_command_line,
		.recordings_only = run->is_for_recordings,
		.with_table = options_prints_table(&ts->state->options),
	};

	m.first_chunk_us = first_chunk_us(run->instance, m.chunk_us);
	if (ts->state->options.transaction != NULL) {
		/* A V1 profile is one chunk: longer than any run with --transaction. */
		(void)snprintf(m.transaction, sizeof(m.transaction), "%s",
			       ts->state->options.transaction);
		m.chunk_us = m.first_chunk_us = CONFIG_CHUNK_MAX_SECONDS * UINT64_C(1000000);
	}
	if (getrandom(&m.hash_seed, sizeof(m.hash_seed), 0) < 0)
		abort();
	memcpy(m.profiler_id, run->profile.profiler_id, sizeof(m.profiler_id));
	memcpy(m.platform, c->platform, sizeof(m.platform));
	memcpy(m.environment, c->environment, sizeof(m.environment));
	memcpy(m.release_given, c->release, sizeof(m.release_given));
	memcpy(m.release_env, ts->state->options.config.release_env, sizeof(m.release_env));
	memcpy(m.in_app_include, ts->state->options.config.in_app_include,
	       sizeof(m.in_app_include));
	memcpy(m.in_app_exclude, ts->state->options.config.in_app_exclude,
	       sizeof(m.in_app_exclude));
	child_send(&run->unwind->child, &m, sizeof(m), NULL, 0);
	run->session = SESSION_ASKED;
	run->overdue_checks = 0;
	run->unwind->sessions_asked++;
	if (run->id > run->unwind->newest_run)
		run->unwind->newest_run = run->id;
}

static void add_to_capture(struct targets *ts, struct run *run)
{
	const struct msg_target_add m = {
		.h = MSG_HEADER(MSG_TARGET_ADD),
		.target = run->id,
		.ring = run->unwind->id,
		.pid = run->pid,
		.slot = run->slot,
		.wants_thread_pointers =
			run->instance->config.thread_id_format == THREAD_ID_PTHREAD,
		.awaits_exec = run->pid == ts->held_pid || run->crash.awaits_exec,
		.uid = run->owner.uid,
		.files_uid = run->owner.files_uid,
		.ignored_crashes = crash_ignored(run->instance),
		.epoch_ns = ts->state->epoch_ns,
		.period_ns = ts->state->period_ns,
	};

	child_send(&ts->children->capture, &m, sizeof(m), &run->pidfd, 1);
	run->in_capture = true;
	run->capture_overdue_checks = 0;
	if (run->rate_hz != ts->state->timer_hz)
		governor_send_rate(ts, run);
}

/*
 * Another process traces the target: a debugger that attached first, or while there was no
 * capture. Until it detaches, no samples are expected.
 */
static void wait_for_tracer(struct run *run, int32_t tracer)
{
	uint64_t now = clock_mono_ns();

	if (run->retry_ns == 0)
		refusal_log_traced_now(run->pid, tracer);
	totals_count_missed(run, now);
	run->phase = RUN_WAITING;
	run->retry_ns = now + RETRY_NS;
}

/*
 * Sends the next message for a run: first to unwind, since a record of a run that unwind
 * does not know breaks a rule.
 */
static void advance(struct targets *ts, struct run *run)
{
	/* Asked early, while unwind opens the session. */
	const enum leak_sanitizer_verdict leaks =
		run->attach_due ? leak_sanitizer_check(ts, run) : LEAK_SANITIZER_WAIT;
	int32_t tracer;
	int r;

	if (run->session == SESSION_NONE && run->unwind->child.fd >= 0 &&
	    run->unwind->sessions_asked < MSG_SESSIONS_ASKED_MAX)
		open_session(ts, run);
	if (run->session != SESSION_OPEN || !run->attach_due || ts->children->capture.fd < 0 ||
	    run->unwind->ring_due || leaks == LEAK_SANITIZER_WAIT ||
	    crash_is_reported(ts, run->instance->parent))
		return;
	run->attach_due = false;
	if (leaks == LEAK_SANITIZER_LEAVE) {
		leak_sanitizer_refuse(ts, run);
		return;
	}
	tracer = targets_trace(ts) ? process_tracer(run->pid) : 0;
	/* Capture itself already traces a child that a target has forked. */
	if (tracer != 0 && tracer != ts->children->capture.pid) {
		wait_for_tracer(run, tracer);
		return;
	}
	if (run->retry_ns != 0)
		run->retry_ns = UINT64_MAX; /* the answer of capture is awaited */
	/* It was not traced meanwhile, perhaps for seconds. */
	r = owners_check(ts, run);
	if (resource_shortage_is(-r))
		run->attach_due = true;
	if (r < 0)
		return;
	leak_sanitizer_forget(run);
	add_to_capture(ts, run);
}

/*
 * Returns true if a line is to be logged, since the process has ended before capture attached: for
 * a process that a user or the command line has named, and that was never profiled. Processes of a
 * section may end at any time.
 */
static bool end_is_logged(const struct run *run)
{
	if (!instance_has_section(run->instance) && run->instance->origin != INSTANCE_CHILD)
		return !run->instance->was_attached;
	log_debug("process %d has ended before it could be attached to", run->pid);
	return false;
}

/* The run ends before it began. end_run() in instances.c decides about the instance. */
static void fail_start(struct run *run, int error)
{
	char delayed[48];

	run->attach_error = error;
	if (resource_shortage_is(error) && run->instance->origin != INSTANCE_GIVEN) {
		(void)snprintf(delayed, sizeof(delayed), "attaching to process %d", run->pid);
		resource_shortage_note(error, delayed);
	} else if (error != ESRCH || end_is_logged(run)) {
		refusal_log_attach(run->pid, run->owner.uid, error);
	}
	run_close(run);
}

void attach_start(struct targets *ts, struct run *run)
{
	if (!run_is_open(run))
		return;
	if (run->unwind == NULL) {
		int r = children_get_unwind(ts->children, &run->owner, &run->unwind);

		if (r < 0) {
			fail_start(run, -r);
			return;
		}
	}
	/* In a crash check_target() decides when capture attaches again. */
	run->attach_due = run->crash.tid == 0 || run->crash.is_over;
	advance(ts, run);
}

/*
 * Returns true if the process has ended and no message will report it: capture does not know the
 * target, because there is no capture, or it has not been told or has left the process.
 */
static bool has_ended_unreported(const struct targets *ts, const struct run *run)
{
	return (!run->in_capture || ts->children->capture.fd < 0) &&
	       run->instance->life == INSTANCE_ENDED;
}

static void on_unreported_end(struct run *run)
{
	if (!run->instance->was_attached)
		run->attach_error = ESRCH;
	if (end_is_logged(run))
		refusal_log_ended(run->pid);
	run->attach_due = false;
	totals_count_missed(run, clock_mono_ns());
	run_close(run);
}

/* Once for each run: each scan of capture may find a few threads fewer. */
static void warn_threads_refused(const struct targets *ts, struct run *run)
{
	const struct capture_counters *now = &ts->children->heartbeat->slots[run->slot];

	if (!run->warned_threads_refused && run->phase == RUN_PROFILED &&
	    run->no_capture_since_ns == 0 && now->refused > 0)
		run->warned_threads_refused =
			refusal_log_threads(run->pid, now->refused, (int)now->refused_error);
}

static void check_target(struct targets *ts, struct run *run, uint64_t now)
{
	if (run->phase == RUN_WAITING && run->retry_ns != 0 && now >= run->retry_ns)
		run->attach_due = crash_is_over(ts, run, now);
	if (run_is_open(run) && has_ended_unreported(ts, run))
		on_unreported_end(run);
	if (run->unwind != NULL && run_is_open(run))
		advance(ts, run);
	/* Capture has ended, so it will not report the end of the target. */
	if (run->phase == RUN_STOPPING && !run->in_capture)
		run_close(run);
	warn_threads_refused(ts, run);
}

/* Returns true if the unwind process runs and has opened the sessions of all its runs. */
static bool has_opened_all_sessions(struct targets *ts, const struct unwind *u)
{
	FOR_EACH_RUN (run, ts)
		if (run->unwind == u && run_is_open(run) && run->session != SESSION_OPEN)
			return false;
	return u->child.fd >= 0;
}

static void make_ring_if_due(struct targets *ts, struct unwind *u)
{
	int r;

	if (!u->ring_due || ts->children->capture.fd < 0 || !has_opened_all_sessions(ts, u))
		return;
	r = children_make_ring(ts->children, u);
	u->ring_due = r < 0;
	if (r < 0)
		resource_shortage_note(-r, "the ring of sentry-profd-unwind");
}

void attach_check(struct targets *ts)
{
	uint64_t now = clock_mono_ns();

	if (!state_is_profiling(ts->state))
		return;
	for (size_t i = 0; i < ts->children->n_unwinds; i++)
		make_ring_if_due(ts, ts->children->unwinds[i]);
	FOR_EACH_RUN (run, ts)
		check_target(ts, run, now);
}

static void on_attached(struct targets *ts, struct run *run)
{
	uint64_t now = clock_mono_ns();

	totals_count_missed(run, now);
	run->no_capture_since_ns = 0;
	run->retry_ns = 0;
	crash_attached(run);
	run->was_attached = true;
	run->instance->was_attached = true;
	/* The run may have ended already, if the message of unwind came first. */
	if (run->phase == RUN_WAITING)
		run->phase = RUN_PROFILED;
	if (ts->state->started_ns == 0 && ts->state->phase < PHASE_DELIVERING)
		ts->state->started_ns = state_now_ns(ts->state);
	log_debug("attached to process %d", run->pid);
}

static void on_refused(struct run *run, int error)
{
	int32_t tracer;

	if ((error == EPERM || error == EBUSY) &&
	    (run->phase == RUN_PROFILED || run->phase == RUN_WAITING)) {
		tracer = process_tracer(run->pid);
		/*
		 * EBUSY without a tracer: it has detached meanwhile, or traces only another
		 * thread.
		 */
		if (tracer != 0 || error == EBUSY) {
			wait_for_tracer(run, tracer);
			return;
		}
	}
	if (run->phase == RUN_STOPPING) {
		run_close(run);
		return;
	}
	/* Its parent crashes: it may be the crash reporter. */
	if (error == ECANCELED) {
		/* A capture that was started again does not have it yet. */
		if (run->phase == RUN_PROFILED)
			run->phase = RUN_WAITING;
		run->retry_ns = clock_mono_ns() + RETRY_NS;
		return;
	}
	fail_start(run, error);
}

/*
 * Returns true if RECORD_END is lost: the unwind process that should read it has died, or its
 * successor has no ring yet.
 */
static bool is_record_end_lost(const struct run *run)
{
	const struct unwind *u = run->unwind;

	return u->child.fd < 0 || run->session != SESSION_OPEN || u->ring_due ||
	       u->rings_awaited > 0;
}

void attach_on_state(struct targets *ts, const struct msg_target_state *m)
{
	struct run *run = targets_run(ts, m->target);

	if (run == NULL) {
		child_fail(&ts->children->capture, "names an unknown target");
		return;
	}
	if (m->state == TARGET_REFUSED || m->state == TARGET_GONE || m->state == TARGET_CRASHED)
		run->in_capture = false;
	switch ((enum target_state)m->state) {
	case TARGET_ATTACHED:
		on_attached(ts, run);
		(void)!owners_check(ts, run);
		return;
	case TARGET_OTHER_RIGHTS:
		owners_end_run(ts, run);
		return;
	case TARGET_REFUSED:
		on_refused(run, m->error);
		return;
	case TARGET_GONE:
		log_debug(run->phase == RUN_STOPPING ? "detached from process %d"
						     : "process %d has ended",
			  run->pid);
		if (run->phase != RUN_PROFILED && run->phase != RUN_STOPPING)
			return;
		if (is_record_end_lost(run))
			run_close(run);
		else
			run_begins_to_close(run, RUN_CLOSING);
		run->overdue_checks = 0;
		return;
	case TARGET_EXEC:
		log_debug("process %d runs a new program", run->pid);
		crash_forget(run->instance);
		(void)!owners_check(ts, run);
		return;
	case TARGET_CRASHED:
		if (run->phase == RUN_STOPPING)
			run_close(run);
		else if (run_is_open(run))
			crash_on_left(ts, run, m);
		return;
	case TARGET_CRASHES_TRACED:
		crash_on_traced(run, m);
		return;
	}
	child_fail(&ts->children->capture, "sends an unknown state");
}

void attach_stop(struct targets *ts, struct run *run)
{
	if (!run_is_open(run))
		return;
	totals_count_missed(run, clock_mono_ns());
	run->attach_due = false;
	if (!run->in_capture) {
		run_close(run);
		return;
	}
	run_begins_to_close(run, RUN_STOPPING);
	run->capture_overdue_checks = 0;
	child_send_id(&ts->children->capture, MSG_TARGET_REMOVE, run->id);
}

void attach_close_all(struct targets *ts)
{
	uint64_t now = clock_mono_ns();

	FOR_EACH_RUN (run, ts) {
		totals_count_missed(run, now);
		run_close(run);
	}
}

void attach_retire(struct run *run)
{
	struct instance *i = run->instance;
	struct targets *ts = i->targets;
	struct run_totals totals;

	if (run->unwind != NULL && run->session == SESSION_OPEN)
		child_send_id(&run->unwind->child, MSG_SESSION_FORGET, run->id);
	totals_of_run(ts, run, &totals);
	totals_add(&i->earlier_runs, &totals);
	if (i->run == run)
		i->run = NULL;
	if (i->closed_run == run)
		i->closed_run = NULL;
	leak_sanitizer_forget(run);
	close_fd(&run->statm_fd);
	run->is_retired = true;
}
