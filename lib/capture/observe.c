#include "lib/capture/observe.h"

#include <stdlib.h>
#include <string.h>

#include "lib/capture/balance.h"
#include "lib/capture/exec.h"
#include "lib/capture/look.h"
#include "lib/capture/perf/perf.h"
#include "lib/capture/proc/activity.h"
#include "lib/capture/record.h"
#include "lib/capture/sample.h"
#include "lib/capture/schedule.h"
#include "lib/capture/sleepers.h"
#include "lib/capture/snapshot.h"
#include "lib/capture/stack_hints.h"
#include "lib/capture/targets.h"
#include "lib/capture/tracees.h"
#include "lib/capture/watched_parts.h"

/* How often processors are checked for those that have gone offline or online. */
#define PROCESSORS_NS NS_PER_SEC

/* The time between samples until the first tick sets it. */
#define FIRST_PERIOD_NS (10 * NS_PER_MS)

/* A sample before it is written: with the most bytes that the kernel copies. */
union sample {
	struct record_sample record;
	uint8_t bytes[sizeof(struct record_sample) + PERF_STACK_BYTES_MAX];
};

uint64_t observe_after(const struct capture *c, uint64_t tick)
{
	return schedule_wake_end(c, tick) + 1;
}

static struct traced_process *find(const struct capture *c, int32_t pid)
{
	/* 0: of another pid namespace. */
	for (size_t i = 0; i < c->n_targets && pid > 0; i++)
		if (c->targets[i].pid == pid && c->targets[i].target->phase != TRACED_ENDED)
			return c->targets[i].target;
	return NULL;
}

/* Finds or adds a thread of the process. Returns NULL for a lack of memory. */
static struct thread *thread_of(struct traced_process *t, int32_t tid)
{
	struct thread *th = tracees_find(t->capture, (uint32_t)tid);

	if (th != NULL && th->target != t) {
		tracees_remove(th, MISSED_EXITED);
		th = NULL;
	}
	if (th == NULL && tracees_adopt(t, (uint32_t)tid) == 0)
		th = tracees_find(t->capture, (uint32_t)tid);
	return th;
}

/* Returns the number of the period, and its begin, in which the time lies; 0: before the first. */
static uint64_t period_of(const struct capture *c, uint64_t time_ns)
{
	const struct tick *tick = &c->tick;
	uint64_t back;

	if (time_ns >= tick->begin_ns)
		return tick->number + (time_ns - tick->begin_ns) / tick->period_ns;
	back = (tick->begin_ns - time_ns + tick->period_ns - 1) / tick->period_ns;
	return tick->number - min_u64(back, tick->number);
}

static uint64_t time_of(const struct capture *c, uint64_t tick)
{
	return c->tick.begin_ns - (c->tick.number - tick) * c->tick.period_ns;
}

/* Makes the sample of a record; returns its size. */
static size_t make_sample(const struct perf *perf, struct thread *th,
			  const struct perf_record *from, union sample *ret)
{
	const uint64_t sp = from->regs[ARCH_SP];
	struct record_sample *s = &ret->record;
	struct stack_plan plan;
	size_t want, n;

	stack_hints_plan(&th->stack.hints, sp, &plan);
	/* The kernel copies from the stack pointer upwards, without the red zone. */
	want = plan.size - min_size(plan.size, ARCH_RED_ZONE);
	n = min_size(want, from->stack_size);
	*s = (struct record_sample){
		.flags = SAMPLE_RUNNING,
		.arch = SNAPSHOT_ARCH,
		.regs_known = perf_read_known(perf),
		.stack_addr = sp,
		.stack_size = (uint32_t)n,
		.known = plan.known,
	};
	memcpy(s->regs, from->regs, sizeof(from->regs));
	/* The limit of the plan, or that of the kernel's copy, cuts the stack off. */
	if (n == want ? plan.known.top == 0 : n == perf_stack_bytes(perf))
		s->flags |= SAMPLE_CAPPED;
	if (plan.second_size > 0)
		s->flags |= SAMPLE_SECOND_CAPPED;
	perf_read_stack(perf, s->stack, n);
	return sizeof(*s) + n;
}

/*
 * After a sample at an earlier tick that no look has followed, the state of the thread is not known
 * until this tick.
 */
static void end_last_sample(struct thread *th, uint64_t tick)
{
	const struct traced_process *t = th->target;
	const struct tick_span *span = &t->ticks.span;
	/* In a look, the span is that of this look. */
	const uint64_t looked_at = tick > span->last ? span->last : span->previous;
	const uint64_t last = th->observed.tick;

	if (last > looked_at && schedule_ticks_between(t, last, tick) > 1)
		record_missed(th, MISSED_LATE, 0, last + 1, time_of(t->capture, last + 1));
}

/* Writes a sample of this tick. */
static void write_sample(struct thread *th, const struct record_sample *s, size_t size,
			 uint64_t tick)
{
	const uint64_t time_ns = time_of(th->target->capture, tick);
	enum missed_reason reason = record_no_room_reason(th->target);

	if (!th->target->reader.needs_reset && record_announce(th, tick, time_ns, &reason) &&
	    record_has_room(th)) {
		end_last_sample(th, tick);
		if (record_write_sample(th, s, size, tick, time_ns)) {
			th->observed.tick = tick;
			th->observed.taken++;
			return;
		}
	}
	th->observed.failed_tick = tick;
	th->observed.reason = reason;
}

enum observe_place observe_place(const struct thread *th, uint64_t tick)
{
	if (tick > th->target->ticks.span.last && tick > th->observed.tick)
		return OBSERVE_TAKE;
	return th->observed.kept == NULL ? OBSERVE_KEEP : OBSERVE_DROP;
}

static void keep_sample(struct thread *th, const struct record_sample *s, size_t size)
{
	th->observed.kept = malloc(size);
	if (th->observed.kept == NULL)
		return;
	memcpy(th->observed.kept, s, size);
	th->observed.kept_size = size;
}

/* RECORD_WATCHED comes before the samples of its tick. */
static void watch_once(struct traced_process *t)
{
	const struct tick *tick = &t->capture->tick;

	if (!t->reader.needs_reset && t->observed.watched_tick != tick->number)
		watched_parts_tick(t, tick->number, tick->begin_ns);
	t->observed.watched_tick = tick->number;
}

/*
 * Until the tick is over, no sample and no look of the process is used: the rights were compared
 * for the program that runs now, and samples may be of one that ran in between.
 */
static void drop_this_tick(struct traced_process *t)
{
	t->observed.drops_tick = t->capture->tick.number;
}

/*
 * Asks once in a tick whether the process runs the program that capture knows. If not, no sample
 * and no look of the tick is used, and the record of the exec follows at the next tick. If it does
 * not, it is lost: then capture handles the exec without it (exec_check_tick).
 */
static bool runs_known_program(struct traced_process *t)
{
	struct traced_observed *o = &t->observed;

	if (o->asked_tick == t->capture->tick.number)
		return o->n_unknown == 0;
	o->asked_tick = t->capture->tick.number;
	o->n_unknown = exec_program_is_known(t) ? 0 : o->n_unknown + 1;
	if (o->n_unknown > 0)
		drop_this_tick(t);
	if (o->n_unknown > 1)
		t->exec.doubt = true;
	return o->n_unknown == 0;
}

static void take_sample(struct traced_process *t, const struct perf_record *from)
{
	struct capture *c = t->capture;
	const uint64_t tick = schedule_tick_of(t, period_of(c, from->time_ns));
	union sample sample;
	struct thread *th;
	size_t size;

	if (t->phase != TRACED_SAMPLED || t->is_withheld ||
	    from->time_ns < t->observed.compared_ns || t->observed.drops_tick == c->tick.number ||
	    tick == 0 || (t->ticks.first_ns == 0 && tick <= t->ticks.span.last) ||
	    !runs_known_program(t))
		return;
	th = thread_of(t, from->tid);
	if (th == NULL) {
		/* The thread has ended before the rings were read. */
		t->counters->expected++;
		t->counters->missed[MISSED_EXITED]++;
		return;
	}
	watch_once(t);
	sleepers_wake(th);
	if (th->life == THREAD_AWAITS_TURN)
		tracees_set_life(th, THREAD_NEW);
	size = make_sample(c->options.perf, th, from, &sample);
	switch (observe_place(th, tick)) {
	case OBSERVE_TAKE:
		write_sample(th, &sample.record, size, tick);
		return;
	case OBSERVE_KEEP:
		keep_sample(th, &sample.record, size);
		return;
	case OBSERVE_DROP:
		t->counters->expected++;
		t->counters->missed[MISSED_TWICE]++;
		return;
	}
}

static void note_fork(struct capture *c, const struct perf_record *r)
{
	struct traced_process *t = find(c, r->pid);

	if (t != NULL && r->pid == r->parent)
		(void)thread_of(t, r->tid);
	else if (c->options.born != NULL && r->pid > 0 && find(c, r->parent) != NULL)
		c->options.born(c->options.ctx, r->pid);
}

static void note_exec(struct traced_process *t)
{
	drop_this_tick(t);
	if (exec_read_first(t) == -ENOEXEC) {
		tracees_forget_all(t);
		targets_end(t, TRACED_END_FOREIGN);
		return;
	}
	exec_happened(t);
	(void)!tracees_adopt(t, (uint32_t)t->pid);
}

/* The thread's samples are written; the look of this tick counts them and removes the thread. */
static void note_exit(struct thread *th)
{
	if (th->target->phase != TRACED_SAMPLED || th->target->is_withheld) {
		tracees_remove(th, MISSED_EXITED);
		return;
	}
	sleepers_wake(th);
	th->observed.exits = true;
}

/*
 * Births, execs and ends may be among the lost records. Scans find threads, and
 * runs_known_program() an exec. Of a process without samples it is asked here.
 */
static void note_lost(struct capture *c)
{
	c->observing.lost_tick = c->tick.number;
	c->observing.births_lost = true;
	FOR_EACH_TARGET (t, c)
		t->exec.doubt |= t->phase == TRACED_AWAITS_EXEC;
}

static void handle(struct capture *c, const struct perf_record *r)
{
	struct traced_process *t = find(c, r->pid);
	struct thread *th = t == NULL ? NULL : tracees_find(c, (uint32_t)r->tid);

	switch (r->kind) {
	case PERF_KIND_SAMPLE:
		if (t != NULL && r->has_user)
			take_sample(t, r);
		return;
	case PERF_KIND_FORK:
		note_fork(c, r);
		return;
	case PERF_KIND_NAME:
		if (th != NULL)
			record_name_changed(th);
		return;
	case PERF_KIND_EXEC:
		if (t != NULL)
			note_exec(t);
		return;
	case PERF_KIND_EXIT:
		if (th != NULL && th->target == t)
			note_exit(th);
		return;
	case PERF_KIND_LOST:
		note_lost(c);
		return;
	case PERF_KIND_THROTTLED:
		c->observing.throttled_tick = c->tick.number;
		return;
	case PERF_KIND_OTHER:
		return;
	}
}

/* Sets the tick under way to the last one whose period has ended; returns the end of the period. */
static uint64_t go_back(struct capture *c)
{
	const uint64_t begin = schedule_wake_begin(c, c->tick.number);
	const uint64_t end_ns = c->tick.begin_ns - (c->tick.number - begin) * c->tick.period_ns;

	c->tick.number = begin - min_u64(begin, 1);
	c->tick.begin_ns = end_ns - c->tick.period_ns;
	return end_ns;
}

void observe_start(struct capture *c)
{
	if (c->n_targets == 0)
		perf_set_period(c->options.perf, FIRST_PERIOD_NS);
}

/* Births are among the lost records: the caller looks for the children itself. */
static void look_for_children(struct capture *c)
{
	struct observing *o = &c->observing;

	if (!o->births_lost || c->options.born == NULL || c->now_ns - o->children_ns < NS_PER_SEC)
		return;
	o->births_lost = false;
	o->children_ns = c->now_ns;
	c->options.born(c->options.ctx, 0);
}

void observe_begin_tick(struct capture *c)
{
	const struct perf_record *record;
	uint64_t end_ns;

	perf_set_period(c->options.perf, c->tick.period_ns * c->wake_of / c->wake_ticks);
	if (c->now_ns - c->observing.checked_ns >= PROCESSORS_NS) {
		c->observing.births_lost |= perf_check_processors(c->options.perf);
		c->observing.checked_ns = c->now_ns;
	}
	end_ns = go_back(c);
	perf_begin(c->options.perf);
	while (perf_next(c->options.perf, end_ns, &record)) {
		handle(c, record);
		perf_release(c->options.perf);
	}
	look_for_children(c);
}

/* Why nothing is known of a thread that runs now and has no sample in the period. */
static enum missed_reason unknown_reason(const struct thread *th)
{
	const struct capture *c = th->target->capture;

	if (th->observed.failed_tick == c->tick.number)
		return th->observed.reason;
	if (c->observing.lost_tick == c->tick.number)
		return MISSED_LOST;
	if (c->observing.throttled_tick == c->tick.number)
		return MISSED_THROTTLED;
	return MISSED_NO_STACK;
}

static void missed(struct thread *th, enum missed_reason reason,
		   const struct covered_ticks *covered)
{
	record_missed(th, reason, covered->n, covered->first, covered->first_ns);
}

/*
 * The thread can run, and was on no processor: it was ready. Its stack is known only if it has not
 * run since its last sample.
 */
static void was_ready(struct thread *th, const struct covered_ticks *covered)
{
	if (!th->observed.mark_known || !th->look.known || th->look.without_mark > 0 ||
	    !activity_same(&th->look.mark, &th->observed.mark)) {
		missed(th, unknown_reason(th), covered);
		return;
	}
	record_ready(th, covered->first, covered->first_ns);
	balance_tell_ready(th, covered->n);
	th->target->counters->repeated += covered->n;
}

/* Looks at a thread without a sample in the period. */
static void look(struct thread *th, const struct covered_ticks *covered)
{
	struct traced_process *t = th->target;
	const struct capture *c = t->capture;
	enum missed_reason reason = record_no_room_reason(t);
	struct activity_place place;
	int r;

	if (t->observed.drops_tick == c->tick.number || !runs_known_program(t)) {
		missed(th, MISSED_EXEC, covered);
		return;
	}
	if (t->reader.needs_reset ||
	    !record_announce(th, covered->first, covered->first_ns, &reason) ||
	    !record_has_room(th)) {
		missed(th, reason, covered);
		return;
	}
	if (th->look.without_mark > 0)
		sleepers_read_times(th);
	switch (activity_look(&th->activity, &place)) {
	case ACTIVITY_RUNNING:
		was_ready(th, covered);
		return;
	case ACTIVITY_DEAD:
		/* It has ended since: a later tick may have a sample of it. */
		th->observed.exits = true;
		t->counters->expected -= covered->n;
		record_missed(th, MISSED_EXITED, 0, covered->first, covered->first_ns);
		return;
	case ACTIVITY_BLOCKED:
		break;
	}
	r = look_sample_blocked(th, covered->first, covered->first_ns, &place,
				th->look.known ? &th->look.mark : NULL);
	if (r == 0) {
		t->counters->captured++;
		t->counters->filled += covered->n - 1;
	} else if (r == -EAGAIN) {
		missed(th, unknown_reason(th), covered);
	} else {
		missed(th, record_missed_reason(t, r), covered);
	}
}

/* Writes the sample that was kept for this tick. */
static void write_kept(struct thread *th)
{
	struct thread_observed *o = &th->observed;

	write_sample(th, o->kept, o->kept_size, th->target->ticks.span.last);
	free(o->kept);
	o->kept = NULL;
}

/*
 * Counts the samples since the last look, and of the other ticks those in which the thread slept;
 * for the rest of them the tracer was late.
 */
static void count_earlier(struct thread *th, uint64_t others, uint64_t slept)
{
	struct capture_counters *counters = th->target->counters;

	counters->captured += th->observed.taken;
	balance_tell_running(th, th->observed.taken);
	th->observed.taken = 0;
	slept = min_u64(slept, others);
	counters->repeated += slept;
	counters->missed[MISSED_LATE] += others - slept;
}

static void note_mark(struct thread *th)
{
	th->observed.mark_known = th->look.known && th->look.without_mark == 0;
	th->observed.mark = th->look.mark;
}

/* ran: the thread has a sample at this tick, so it ends at the next one. */
static void remove_dead(struct thread *th, bool ran)
{
	const struct tick_span *span = &th->target->ticks.span;

	if (!ran && th->reader.announced) {
		(void)record_event(th->target, RECORD_EXIT, th->tid, span->last, span->last_ns);
		tracees_set_life(th, THREAD_DEAD);
	}
	tracees_remove(th, MISSED_EXITED);
}

void observe_look(struct thread *th, uint64_t ticks, const struct covered_ticks *covered)
{
	struct thread_observed *o = &th->observed;
	const struct tick_span *span = &th->target->ticks.span;
	struct covered_ticks now = *covered;
	uint64_t known;
	bool ran;

	if (o->kept != NULL && o->tick != span->last)
		write_kept(th);
	ran = o->tick == span->last;
	if (o->taken > 0 && !ran) {
		/* Nothing is known of the ticks since its last sample. */
		end_last_sample(th, span->last);
		now = (struct covered_ticks){
			.n = 1, .first = span->last, .first_ns = span->last_ns};
	}
	known = o->taken + (ran ? 0 : now.n);
	if (ticks < known) {
		/* A new thread, of which only this tick was expected. */
		th->target->counters->expected += known - ticks;
		ticks = known;
	}
	count_earlier(th, ticks - known, ran ? now.n_unchanged + now.n - 1 : now.n_unchanged);
	if (ran)
		note_mark(th);
	/* A kept sample gets the next tick first. */
	if (o->exits && o->kept == NULL) {
		th->target->counters->expected -= ran ? 0 : now.n;
		remove_dead(th, ran);
	} else if (!ran) {
		look(th, &now);
	}
}
