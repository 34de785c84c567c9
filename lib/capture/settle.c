#include <sys/ptrace.h>

#include "lib/capture/target.h"

/*
 * The rests of calls have this long until they are cut off: few take it, and
 * whoever ends us waits.
 */
#define RESTS_NS (1 * NS_PER_SEC)

/*
 * True if there are any in the list; or stops that are due without a sample:
 * who is woken for one after we have left comes out of its call with nobody to
 * mend it. A thread in a sleep that nothing ends is not waited for longer than
 * for a rest, nor is a call whose result we would mend at its end.
 */
static bool end_rests(struct thread *list, bool cut)
{
	bool found = false;

	for (struct thread *th = list; th != NULL; th = th->next) {
		found |= rest_is_ahead(&th->rest);
		found |= (th->stop_expected || rest_is_mended(&th->rest)) &&
			 !cut;
		if (!rest_is_at_risk(&th->rest))
			continue;
		found = true;
		if (cut)
			(void)ptrace(PTRACE_INTERRUPT, th->tid, NULL, NULL);
	}
	return found;
}

/* One that is left alone has no stop of ours before it, and may take long. */
static bool awaits_stop(const struct capture *c)
{
	for (const struct thread *th = c->pending; th != NULL;
	     th = th->next_pending)
		if (!rest_is_alone(&th->rest))
			return true;
	return false;
}

bool capture_settle(struct capture *c)
{
	uint64_t now = c->options.now_ns();
	bool found = false;

	if (c->finish_ns == 0)
		c->finish_ns = now;
	c->finishing = now - c->finish_ns >= RESTS_NS;
	FOR_EACH_TARGET (t, c) {
		found |= end_rests(t->awake, c->finishing);
		found |= end_rests(t->asleep, c->finishing);
	}
	return !found && !awaits_stop(c);
}
