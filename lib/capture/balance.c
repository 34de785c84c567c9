#include "lib/capture/balance.h"

#include <stdlib.h>

#include "lib/capture/state.h"

/* A surplus of so many ticks is chance. */
#define SURPLUS_TICKS 8

/* Between two readings of a process's CPU time. */
#define CLOCK_NS NS_PER_SEC

/* After so many ticks of each thread, the sums of a process are halved. */
#define MEMORY_TICKS 8192

static int64_t ticks_ns(const struct thread *th, uint64_t ticks)
{
	return (int64_t)(ticks * th->target->ticks.span.length_ns);
}

static void halve(struct process_time *sum)
{
	sum->lack_ns /= 2;
	sum->counted_ns /= 2;
	sum->spread /= 4;
}

/*
 * A look tells all or nothing of the ticks that it stands for. Of n looks, a thread that runs for
 * the part p of the time is found running at n * p on average, with the variance n * p * (1 - p).
 */
static bool differs_more_than_chance(const struct thread *th, const struct process_time *sum)
{
	const double lack = (double)sum->lack_ns, counted = (double)sum->counted_ns,
		     ticks = (double)th->target->balance.ticks_ns;
	const double variance = counted < ticks ? sum->spread * (1 - counted / ticks) : 0;

	return llabs(sum->lack_ns) > ticks_ns(th, SURPLUS_TICKS) && lack * lack > 9 * variance;
}

static void add_difference(struct thread *th, struct thread_time *own, struct process_time *sum,
			   uint64_t counted_ns)
{
	const int64_t lack_ns = (int64_t)counted_ns - (int64_t)own->told_ns;

	own->lately_ns -= min_u64(own->lately_ns, own->told_ns);
	if (counted_ns > 0)
		own->lately_ns = max_u64(counted_ns, (uint64_t)ticks_ns(th, 1));
	own->lack_ns += lack_ns;
	sum->lack_ns += lack_ns;
	sum->counted_ns += counted_ns;
	sum->spread += (double)counted_ns * (double)ticks_ns(th, th->target->ticks.span.n);
	sum->lacks = sum->lack_ns > 0 && (sum->lacks || differs_more_than_chance(th, sum));
	sum->has_surplus =
		sum->lack_ns < 0 && (sum->has_surplus || differs_more_than_chance(th, sum));
}

static void add_differences(struct thread *th)
{
	struct process_balance *sums = &th->target->balance;
	struct thread_balance *own = &th->balance;
	const struct activity_mark *now = &th->look.mark;

	sums->ticks_ns += (uint64_t)ticks_ns(th, th->target->ticks.span.n);
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
	if (!th->look.known || th->look.without_mark > 0)
		return;
	if (own->mark.slices != 0)
		add_differences(th);
	own->mark = th->look.mark;
	own->run.told_ns = own->ready.told_ns = 0;
}

void balance_tell_running(struct thread *th, uint64_t ticks)
{
	const uint64_t ns = (uint64_t)ticks_ns(th, ticks);

	th->balance.run.told_ns += ns;
	th->target->counters->running_ns += ns;
}

void balance_tell_ready(struct thread *th, uint64_t ticks)
{
	const uint64_t ns = (uint64_t)ticks_ns(th, ticks);

	th->balance.ready.told_ns += ns;
	th->target->counters->ready_ns += ns;
}

void balance_forget(struct thread *th)
{
	th->balance.mark.slices = 0;
	th->target->balance.clock_due_ns = 0;
}

void balance_read_clock(struct traced_process *t)
{
	struct capture_counters *counters = t->counters;
	struct process_balance *b = &t->balance;
	const struct tick_span *span = &t->ticks.span;
	const uint64_t before_ns = b->clock_ns;

	/* Capture has come too late for ticks: the looks that follow count these as missed. */
	if (span->n > 1 + span->left_out)
		b->clock_due_ns = 0;
	if (span->last_ns < b->clock_due_ns ||
	    t->capture->options.process_ns(t->pid, &b->clock_ns) < 0)
		return;
	if (b->clock_due_ns != 0) {
		counters->compared_cpu_ns += b->clock_ns - before_ns;
		counters->compared_running_ns += counters->running_ns - b->clock_running_ns;
	}
	b->clock_running_ns = counters->running_ns;
	b->clock_due_ns = span->last_ns + CLOCK_NS;
}

static bool lacks(const struct thread_time *own, const struct process_time *sum, int64_t ns)
{
	return own->lack_ns > ns && (int64_t)own->lately_ns >= ns && sum->lacks;
}

enum activity_at_tick balance_of_blocked(const struct thread *th, uint64_t ticks)
{
	const struct process_balance *sums = &th->target->balance;
	const int64_t ns = ticks_ns(th, ticks);

	if (lacks(&th->balance.run, &sums->run, ns))
		return ACTIVITY_RAN;
	return lacks(&th->balance.ready, &sums->ready, ns) ? ACTIVITY_WAS_READY : ACTIVITY_WAITED;
}

static enum activity_at_tick decide(const struct thread *th)
{
	const struct process_balance *sums = &th->target->balance;
	const int64_t most_ns = ticks_ns(th, SURPLUS_TICKS);

	if (sums->run.lack_ns >= -most_ns && th->balance.run.lack_ns >= -most_ns)
		return ACTIVITY_RAN;
	return th->stop.in_call && sums->ready.lack_ns < -most_ns ? ACTIVITY_WAITED
								  : ACTIVITY_WAS_READY;
}

enum activity_at_tick balance_of_stop(const struct thread *th, enum activity_at_tick state)
{
	if (state == ACTIVITY_MAY_HAVE_RUN)
		return decide(th);
	if (state == ACTIVITY_RAN && th->stop.woken && th->target->balance.run.has_surplus)
		return ACTIVITY_WAITED;
	return state;
}
