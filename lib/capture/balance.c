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

static void halve(struct process_time *sum)
{
	sum->lack_ns /= 2;
	sum->counted_ns /= 2;
}

/*
 * Time is told in whole ticks. Of n ticks, a thread that runs for the part p of them gets n * p on
 * average, with the variance n * p * (1 - p).
 */
static bool lacks_more_than_chance(const struct thread *th, const struct process_time *sum)
{
	const double tick = (double)ticks_ns(th, 1), counted = (double)sum->counted_ns,
		     ticks = (double)th->target->balance.ticks_ns, lack = (double)sum->lack_ns;
	const double variance = counted < ticks ? tick * counted * (1 - counted / ticks) : 0;

	return lack > (double)ticks_ns(th, SURPLUS_TICKS) && lack * lack > 9 * variance;
}

static void add_difference(struct thread *th, struct thread_time *own, struct process_time *sum,
			   uint64_t counted_ns)
{
	const int64_t lack_ns = (int64_t)counted_ns - (int64_t)own->told_ns;

	own->has_grown = counted_ns > 0;
	own->lack_ns += lack_ns;
	sum->lack_ns += lack_ns;
	sum->counted_ns += counted_ns;
	sum->is_filled = sum->lack_ns > 0 && (sum->is_filled || lacks_more_than_chance(th, sum));
}

static void add_differences(struct thread *th)
{
	struct process_balance *sums = &th->target->balance;
	struct thread_balance *own = &th->balance;
	const struct activity_mark *now = &th->look.mark;

	sums->ticks_ns += th->target->ticks.length_ns;
	add_difference(th, &own->run, &sums->run, now->run_ns - own->mark.run_ns);
	add_difference(th, &own->ready, &sums->ready, now->wait_ns - own->mark.wait_ns);
	if (sums->ticks_ns > (uint64_t)ticks_ns(th, MEMORY_TICKS) * th->target->threads.n) {
		halve(&sums->run);
		halve(&sums->ready);
		sums->ticks_ns /= 2;
	}
}

void balance_compare(struct thread *th)
{
	struct thread_balance *own = &th->balance;
	/* A look after skipped ticks covers many: chance is larger there, and little has run. */
	const bool is_first = own->mark.slices == 0 || th->target->ticks.due > 1;

	if (!th->look.known || th->look.without_mark > 0)
		return;
	own->run.has_grown = own->ready.has_grown = false;
	if (!is_first)
		add_differences(th);
	own->mark = th->look.mark;
	own->run.told_ns = own->ready.told_ns = 0;
}

void balance_tell_running(struct thread *th, uint64_t ticks)
{
	th->balance.run.told_ns += (uint64_t)ticks_ns(th, ticks);
}

void balance_tell_ready(struct thread *th, uint64_t ticks)
{
	th->balance.ready.told_ns += (uint64_t)ticks_ns(th, ticks);
}

void balance_forget(struct thread *th)
{
	th->balance.mark.slices = 0;
}

static bool lacks(const struct thread *th, const struct thread_time *own,
		  const struct process_time *sum)
{
	return own->has_grown && own->lack_ns > ticks_ns(th, 1) && sum->is_filled;
}

enum activity_at_tick balance_of_blocked(const struct thread *th)
{
	const struct process_balance *sums = &th->target->balance;

	if (lacks(th, &th->balance.run, &sums->run))
		return ACTIVITY_RAN;
	return lacks(th, &th->balance.ready, &sums->ready) ? ACTIVITY_WAS_READY : ACTIVITY_WAITED;
}

enum activity_at_tick balance_decide(const struct thread *th, bool in_call)
{
	const struct process_balance *sums = &th->target->balance;
	const int64_t most_ns = ticks_ns(th, SURPLUS_TICKS);

	if (sums->run.lack_ns >= -most_ns && th->balance.run.lack_ns >= -most_ns)
		return ACTIVITY_RAN;
	return in_call && sums->ready.lack_ns < -most_ns ? ACTIVITY_WAITED : ACTIVITY_WAS_READY;
}
