#include <sys/ptrace.h>

#include "lib/capture/target.h"

/*
 * Rests of calls are cut off, and stops no more waited for, when none of those
 * threads has moved for so long: what they wait for may never come, and whoever
 * ends us waits. As long as one of them runs, or waits for a processor, this
 * may be a machine that has none to spare, on which a call takes seconds.
 */
#define STILL_NS  (2 * NS_PER_SEC)
#define MOVING_NS (10 * NS_PER_SEC)
/* Those that are cut off have to stop for it: as long again, each. */
#define GIVE_UP 2

/*
 * Where many threads are in calls there is always one that is in a rest, until
 * nobody is interrupted any more: so that is tried, for this long, this often.
 */
#define TRY_NS	     (250 * NS_PER_MS)
#define TRY_EVERY_NS (2 * NS_PER_SEC)

/* What is looked for, and what was seen of those that are waited for. */
struct sight {
	bool stops; /* not only calls, which take longer */
	bool cut;
	bool found;
	bool runs;    /* one of them, or it waits for a processor */
	uint64_t ran; /* all of them: another number if one has */
};

/*
 * Its call would fail, or come back with less, if we left; or a stop is due:
 * who is woken for one after we have left comes out of its call with nobody to
 * mend it. One that is left alone has no stop of ours before it, and may take
 * long. A thread in a sleep that nothing ends is not waited for longer than for
 * a rest, nor is a call whose result we would mend at its end.
 */
static bool is_waited_for(const struct thread *th, const struct sight *sight)
{
	if (rest_is_ahead(&th->rest) || rest_is_at_risk(&th->rest))
		return true;
	if (sight->cut)
		return false;
	return rest_is_mended(&th->rest) ||
	       (sight->stops && th->due != DUE_NOTHING && !rest_is_alone(&th->rest));
}

static void look_at(struct thread *list, struct sight *sight)
{
	struct activity_place place;
	struct activity_mark mark;

	for (struct thread *th = list; th != NULL; th = th->next) {
		if (!is_waited_for(th, sight))
			continue;
		sight->found = true;
		sight->runs |= activity_look(&th->activity, &place) == ACTIVITY_RUNNING;
		if (activity_mark(&th->activity, &mark))
			sight->ran += mark.run_ns + mark.slices;
		if (sight->cut && rest_is_at_risk(&th->rest))
			(void)ptrace(PTRACE_INTERRUPT, th->tid, NULL, NULL);
	}
}

static void look(const struct target *t, struct sight *sight)
{
	look_at(t->awake, sight);
	look_at(t->asleep, sight);
}

/* For how long none of them has moved. */
static uint64_t still_ns(struct settle *s, const struct sight *sight, uint64_t now)
{
	if (s->since_ns == 0)
		s->since_ns = s->moved_ns = now;
	if (!sight->found || sight->runs || sight->ran != s->moved_ran)
		s->moved_ns = now;
	s->moved_ran = sight->ran;
	return now - s->moved_ns;
}

static bool is_over(struct settle *s, const struct sight *sight, uint64_t now)
{
	const uint64_t still = still_ns(s, sight, now);
	const uint64_t took = now - s->since_ns;

	s->cut |= still >= STILL_NS || took >= MOVING_NS;
	return !sight->found || still >= GIVE_UP * STILL_NS || took >= GIVE_UP * MOVING_NS;
}

/* One that is to be let go of is looked at by itself. */
static bool is_settled(struct target *t, uint64_t now)
{
	struct sight sight = {.stops = true, .cut = t->settle.cut};

	look(t, &sight);
	return is_over(&t->settle, &sight, now);
}

bool capture_settle(struct capture *c)
{
	const uint64_t now = c->options.now_ns();
	struct sight sight = {.stops = true, .cut = c->settle.cut};
	bool settled = true;

	FOR_EACH_TARGET (t, c) {
		if (t->phase == TARGET_LEAVES)
			settled &= is_settled(t, now);
		else
			look(t, &sight);
	}
	return is_over(&c->settle, &sight, now) && settled;
}

/* A moment in which a call of those that stay is waited for without ticks. */
static bool is_tried(struct capture *c, uint64_t now)
{
	if (now - c->tried_ns >= TRY_EVERY_NS)
		c->tried_ns = now;
	return now - c->tried_ns < TRY_NS;
}

/*
 * The calls of those that stay are waited for as well: they are let go of for a
 * moment. Who does not move would be cut off anyway; who does for long is
 * waited for once more, by all. So is one that was to be let go of later, but
 * not as soon: nothing begins in it any more.
 */
bool capture_lets_go(struct capture *c)
{
	const uint64_t now = c->options.now_ns();
	struct sight others = {.stops = false};
	uint64_t longest = 0;
	bool settled = true, late;

	/* They have ended by themselves: calls are gone on with again. */
	if (c->n_leaving == 0) {
		c->settle = (struct settle){0};
		return false;
	}
	if (c->settle.cut)
		return true;
	FOR_EACH_TARGET (t, c) {
		if (t->phase != TARGET_LEAVES) {
			look(t, &others);
			continue;
		}
		if (!is_settled(t, now))
			settled = false;
		else
			longest = max_u64(longest, now - t->settle.since_ns);
	}
	late = longest >= (settled ? MOVING_NS : GIVE_UP * MOVING_NS);
	c->settle.cut = still_ns(&c->others, &others, now) >= STILL_NS && settled;
	if (late || c->settle.cut || (settled && (!others.found || is_tried(c, now))))
		return true;
	c->settle = (struct settle){0};
	return false;
}
