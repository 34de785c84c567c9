#include "lib/capture/detach.h"

#include <errno.h>
#include <sys/ptrace.h>

#include "lib/capture/attach.h"
#include "lib/capture/crash.h"
#include "lib/capture/exec.h"
#include "lib/capture/held_exec.h"
#include "lib/capture/restart/resume.h"
#include "lib/capture/schedule.h"
#include "lib/capture/state.h"
#include "lib/capture/targets.h"

int capture_remove(struct capture *c, uint32_t id)
{
	FOR_EACH_TARGET (t, c) {
		if (t->id != id || t->phase == TRACED_ENDED)
			continue;
		if (c->options.perf != NULL) {
			/* No thread is traced. */
			targets_finish(t);
			return 0;
		}
		if (c->detaching.n == 0)
			c->detaching.others = (struct settling){0};
		c->detaching.n += t->phase != TRACED_DETACHING;
		t->phase = TRACED_DETACHING;
		schedule_target(t);
		return 0;
	}
	return -ENOENT;
}

bool capture_is_detaching(const struct capture *c)
{
	return c->detaching.n > 0;
}

/*
 * Attaches to a target again. The scan finds new threads, and the leader of a new program. Returns
 * false if another tracer has the target.
 */
static bool attach_again(struct traced_process *t)
{
	int r;

	attach_known_again(t);
	/* An exec that happened meanwhile was not reported. */
	exec_check(t);
	attach_end_pass(t);
	r = attach_scan(t);
	if (t->threads.n > 0 || t->scan.held_up_ticks > 0)
		return true;
	if (r == -EPERM || r == -EBUSY)
		return false;
	targets_end(t, TRACED_END_GONE);
	return true;
}

void capture_attach_again(struct capture *c)
{
	c->detaching.all = (struct settling){0};
	c->detaching.at_once = false;
	held_exec_forget_all(c);
	for (size_t i = 0; i < c->n_targets;) {
		struct traced_process *t = c->targets[i].target;

		c->options.beat->touching = t->id;
		if (t->crash.now.tid != 0 && t->phase != TRACED_ENDED)
			crash_tracer_ended(t);
		if (t->phase == TRACED_DETACHING)
			targets_finish(t);
		if (t->phase == TRACED_ENDED || attach_again(t)) {
			i++;
			continue;
		}
		c->options.event(c->options.ctx, t->id, CAPTURE_OTHER_TRACER);
		targets_free(t);
	}
	c->options.beat->touching = 0;
	targets_free_ended(c);
	if (c->options.born != NULL)
		c->options.born(c->options.ctx, 0);
}

/*
 * Limits of the wait for threads. If none of the awaited threads has moved for STILL_NS, their
 * resumed calls are cut short, because the event that they wait for may never come. If a thread
 * runs or waits for a processor, calls may take seconds because the machine is busy: then calls are
 * cut short after MOVING_NS.
 */
#define STILL_NS  (2 * NS_PER_SEC)
#define MOVING_NS (10 * NS_PER_SEC)
/*
 * A thread must stop for its call to be cut short. Capture waits for the stops as long again, and
 * gives up after GIVE_UP times each limit.
 */
#define GIVE_UP 2

/*
 * Among many threads, one is always in a resumed call as long as threads are interrupted. So ticks
 * pause for TICKS_OFF_NS every TICKS_OFF_EVERY_NS.
 */
#define TICKS_OFF_NS	   (250 * NS_PER_MS)
#define TICKS_OFF_EVERY_NS (2 * NS_PER_SEC)

/* The threads for which the end of the tracer must wait. */
struct awaited {
	/* Set by the caller: due stops count, too, and not only resumed calls. */
	bool with_stops;
	bool cut;     /* set by the caller: resumed calls are cut short */
	bool at_once; /* set by the caller: due stops count even if calls are cut short */
	/* Set by check_awaited(). */
	bool found;   /* there is such a thread */
	bool runs;    /* one of these threads runs, or waits for a processor */
	uint64_t ran; /* a sum over these threads, which changes when one of them has run */
};

/*
 * Returns true if the end of the tracer must wait for this thread.
 * - Its call would fail, or return less, if the tracer ended now.
 * - A stop is due: a thread that is woken for a stop after the tracer's end leaves its call, and no
 *   tracer repairs the call. (A thread that must not be disturbed has no interrupt under way, and
 *   may take long.)
 *
 * Two waits end when calls are cut short: for a stop, such as that of a thread in uninterruptible
 * sleep, and for a call whose result capture corrects at its end.
 */
static bool is_waited_for(const struct thread *th, const struct awaited *awaited)
{
	if (resume_is_entering(&th->resumed) || resume_holds_result(&th->resumed))
		return true;
	if (awaited->at_once)
		return th->due != DUE_NOTHING;
	if (awaited->cut)
		return false;
	return resume_corrects_result(&th->resumed) ||
	       (awaited->with_stops && th->due != DUE_NOTHING &&
		!resume_is_undisturbed(&th->resumed));
}

/* Adds the awaited threads of a list. If calls are cut short, interrupts those in such a call. */
static void check_list(struct thread *list, struct awaited *awaited)
{
	struct activity_place place;
	struct activity_mark mark;

	for (struct thread *th = list; th != NULL; th = th->next) {
		if (!is_waited_for(th, awaited))
			continue;
		awaited->found = true;
		awaited->runs |= activity_look(&th->activity, &place) == ACTIVITY_RUNNING;
		if (activity_mark(&th->activity, &mark))
			awaited->ran += mark.run_ns + mark.slices;
		if (awaited->cut && resume_holds_result(&th->resumed))
			(void)ptrace(PTRACE_INTERRUPT, th->tid, NULL, NULL);
	}
}

static void check_awaited(const struct traced_process *t, struct awaited *awaited)
{
	check_list(t->threads.awake, awaited);
	check_list(t->threads.asleep, awaited);
}

/* Returns for how long none of the awaited threads has moved. */
static uint64_t still_ns(struct settling *s, const struct awaited *awaited, uint64_t now)
{
	if (s->since_ns == 0)
		s->since_ns = s->moved_ns = now;
	if (!awaited->found || awaited->runs || awaited->ran != s->moved_ran)
		s->moved_ns = now;
	s->moved_ran = awaited->ran;
	return now - s->moved_ns;
}

/*
 * Decides whether calls are cut short. Returns true if there is nothing to wait for, or if capture
 * has waited long enough.
 */
static bool is_over(struct settling *s, const struct awaited *awaited, uint64_t now)
{
	const uint64_t still = still_ns(s, awaited, now);
	const uint64_t took = now - s->since_ns;

	s->cut |= still >= STILL_NS || took >= MOVING_NS;
	return !awaited->found || still >= GIVE_UP * STILL_NS || took >= GIVE_UP * MOVING_NS;
}

/* A target from which capture detaches is settled separately. */
static bool is_settled(struct traced_process *t, uint64_t now)
{
	struct awaited awaited = {.with_stops = true, .cut = t->settling.cut};

	check_awaited(t, &awaited);
	return is_over(&t->settling, &awaited, now);
}

bool capture_settle(struct capture *c)
{
	const uint64_t now = c->options.now_ns();
	struct awaited awaited = {.with_stops = true, .cut = c->detaching.all.cut};
	bool settled = true;

	FOR_EACH_TARGET (t, c) {
		if (t->phase == TRACED_DETACHING)
			settled &= is_settled(t, now);
		else
			check_awaited(t, &awaited);
	}
	return is_over(&c->detaching.all, &awaited, now) && settled;
}

/* Returns true while ticks are paused so that calls of the other targets can end. */
static bool are_ticks_off(struct capture *c, uint64_t now)
{
	if (now - c->detaching.ticks_off_ns >= TICKS_OFF_EVERY_NS)
		c->detaching.ticks_off_ns = now;
	return now - c->detaching.ticks_off_ns < TICKS_OFF_NS;
}

/*
 * Capture detaches from the targets that stay, too, for a moment. So it also waits for their calls.
 * Calls of threads that make no progress would be cut short anyway. If a thread makes progress for
 * long, capture waits for all threads once more. A target that was removed later than another gets
 * less time, because no new call is resumed in it.
 */
bool capture_prepare_detach(struct capture *c)
{
	const uint64_t now = c->options.now_ns();
	struct awaited others = {.with_stops = false};
	uint64_t longest = 0;
	bool settled = true, late;

	/* The detaching targets have ended by themselves, so calls are resumed again. */
	if (c->detaching.n == 0) {
		c->detaching.all = (struct settling){0};
		return false;
	}
	if (c->detaching.all.cut)
		return true;
	FOR_EACH_TARGET (t, c) {
		if (t->phase != TRACED_DETACHING) {
			check_awaited(t, &others);
			continue;
		}
		if (!is_settled(t, now))
			settled = false;
		else
			longest = max_u64(longest, now - t->settling.since_ns);
	}
	late = longest >= (settled ? MOVING_NS : GIVE_UP * MOVING_NS);
	c->detaching.all.cut = still_ns(&c->detaching.others, &others, now) >= STILL_NS && settled;
	if (late || c->detaching.all.cut || (settled && (!others.found || are_ticks_off(c, now))))
		return true;
	c->detaching.all = (struct settling){0};
	return false;
}

void detach_demand_now(struct capture *c)
{
	c->detaching.at_once = true;
}

bool capture_must_detach_now(const struct capture *c)
{
	return c->detaching.at_once;
}

bool detach_others_are_settled(struct capture *c, const struct traced_process *but)
{
	struct awaited awaited = {.with_stops = true, .cut = true, .at_once = true};

	c->detaching.all.cut = true;
	FOR_EACH_TARGET (t, c)
		if (t != but)
			check_awaited(t, &awaited);
	return !awaited.found;
}

bool capture_finish(struct capture *c)
{
	FOR_EACH_TARGET (t, c)
		targets_finish(t);
	targets_free_ended(c);
	return c->n_targets == 0;
}
