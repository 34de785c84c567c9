#include "lib/capture/balance.h"

#include "lib/capture/state.h"

/* A surplus of so many ticks is chance. */
#define SURPLUS_TICKS 8

/* After so many ticks of each thread, the sums of a process are halved. */
#define MEMORY_TICKS 8192

static int64_t ticks_ns(const struct thread *th, uint64_t ticks)
{
	return (int64_t)(ticks * th->target->ticks.length_ns);
}

static void halve(struct process_balance *b)
{
	b->run_ns /= 2;
	b->ready_ns /= 2;
	b->counted_run_ns /= 2;
	b->ticks_ns /= 2;
}

static void add_difference(struct thread *th)
{
	struct process_balance *sums = &th->target->balance;
	struct thread_balance *own = &th->balance;
	const uint64_t ran_ns = th->look.mark.run_ns - own->mark.run_ns;
	const uint64_t waited_ns = th->look.mark.wait_ns - own->mark.wait_ns;
	const int64_t run_ns = (int64_t)ran_ns - (int64_t)own->told_running_ns;
	const int64_t ready_ns = (int64_t)waited_ns - (int64_t)own->told_ready_ns;

	own->run_ns += run_ns;
	sums->run_ns += run_ns;
	sums->ready_ns += ready_ns;
	sums->counted_run_ns += ran_ns;
	sums->ticks_ns += th->target->ticks.length_ns;
	if (sums->ticks_ns > (uint64_t)ticks_ns(th, MEMORY_TICKS) * th->target->threads.n)
		halve(sums);
}

void balance_compare(struct thread *th)
{
	struct thread_balance *own = &th->balance;
	/* A look after skipped ticks covers many: chance is larger there, and little has run. */
	const bool is_first = own->mark.slices == 0 || th->target->ticks.due > 1;

	if (!th->look.known || th->look.without_mark > 0)
		return;
	own->has_run = !is_first && !activity_same(&own->mark, &th->look.mark);
	if (!is_first)
		add_difference(th);
	own->mark = th->look.mark;
	own->told_running_ns = own->told_ready_ns = 0;
}

void balance_tell_running(struct thread *th, uint64_t ticks)
{
	th->balance.told_running_ns += (uint64_t)ticks_ns(th, ticks);
}

void balance_tell_ready(struct thread *th, uint64_t ticks)
{
	th->balance.told_ready_ns += (uint64_t)ticks_ns(th, ticks);
}

void balance_forget(struct thread *th)
{
	th->balance.mark.slices = 0;
}

/*
 * Time is told in whole ticks. Of n ticks, a thread that runs for the part p of them gets n * p on
 * average, with the variance n * p * (1 - p).
 */
static bool lacks_more_than_chance(const struct thread *th)
{
	const struct process_balance *sums = &th->target->balance;
	const double tick = (double)ticks_ns(th, 1), run = (double)sums->counted_run_ns,
		     ticks = (double)sums->ticks_ns, lack = (double)sums->run_ns;
	const double variance = run < ticks ? tick * run * (1 - run / ticks) : 0;

	return lack > (double)ticks_ns(th, SURPLUS_TICKS) && lack * lack > 9 * variance;
}

bool balance_lacks(const struct thread *th)
{
	return th->balance.has_run && th->balance.run_ns > ticks_ns(th, 1) &&
	       lacks_more_than_chance(th);
}

enum activity_at_tick balance_decide(const struct thread *th, bool in_call)
{
	const struct process_balance *sums = &th->target->balance;
	const int64_t most_ns = ticks_ns(th, SURPLUS_TICKS);

	if (sums->run_ns >= -most_ns && th->balance.run_ns >= -most_ns)
		return ACTIVITY_RAN;
	return in_call && sums->ready_ns < -most_ns ? ACTIVITY_WAITED : ACTIVITY_WAS_READY;
}
