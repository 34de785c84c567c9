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

/* What was seen of those that are waited for. */
struct sight {
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
static bool is_waited_for(const struct thread *th, bool cut)
{
	if (rest_is_ahead(&th->rest) || rest_is_at_risk(&th->rest))
		return true;
	return !cut && (th->stop_expected || rest_is_mended(&th->rest) ||
			(th->pending && !rest_is_alone(&th->rest)));
}

static void look(struct thread *list, bool cut, struct sight *sight)
{
	struct activity_place place;
	struct activity_mark mark;

	for (struct thread *th = list; th != NULL; th = th->next) {
		if (!is_waited_for(th, cut))
			continue;
		sight->found = true;
		sight->runs |= activity_look(&th->activity, &place) ==
			       ACTIVITY_RUNNING;
		if (activity_mark(&th->activity, &mark))
			sight->ran += mark.run_ns + mark.slices;
		if (cut && rest_is_at_risk(&th->rest))
			(void)ptrace(PTRACE_INTERRUPT, th->tid, NULL, NULL);
	}
}

bool capture_settle(struct capture *c)
{
	const uint64_t now = c->options.now_ns();
	struct sight sight = {.found = false};
	uint64_t still;

	if (c->finish_ns == 0)
		c->finish_ns = c->moved_ns = now;
	FOR_EACH_TARGET (t, c) {
		look(t->awake, c->finishing, &sight);
		look(t->asleep, c->finishing, &sight);
	}
	if (sight.runs || sight.ran != c->moved_ran)
		c->moved_ns = now;
	c->moved_ran = sight.ran;
	still = now - c->moved_ns;
	c->finishing |= still >= STILL_NS || now - c->finish_ns >= MOVING_NS;
	return !sight.found || still >= GIVE_UP * STILL_NS ||
	       now - c->finish_ns >= GIVE_UP * MOVING_NS;
}
