#include "lib/capture/schedule.h"

#include <assert.h>

#include "lib/capture/state.h"

/*
 * How rates are kept. The target with the highest rate has its ticks where the sum of its rate,
 * added at each tick, passes a whole number. The ticks of the other targets are among these, by the
 * same rule. So capture wakes at the highest rate, and not at the sum of all rates. A target's rate
 * is of_wakes / wakes of the highest one.
 */
struct share {
	uint64_t of_wakes, wakes;
};

static struct share share_of(const struct traced_process *t)
{
	const struct capture *c = t->capture;

	return (struct share){
		.of_wakes = t->schedule.rate_ticks * c->wake_of,
		.wakes = t->schedule.rate_of * c->wake_ticks,
	};
}

/* Returns the number of the target's ticks up to and including this one. */
static uint64_t own_ticks(const struct traced_process *t, uint64_t tick)
{
	const struct capture *c = t->capture;
	const struct share share = share_of(t);

	return tick * c->wake_ticks / c->wake_of * share.of_wakes / share.wakes;
}

static uint64_t divide_up(uint64_t a, uint64_t b)
{
	return (a + b - 1) / b;
}

uint64_t schedule_wake_begin(const struct capture *c, uint64_t tick)
{
	return divide_up(tick * c->wake_ticks / c->wake_of * c->wake_of, c->wake_ticks);
}

uint64_t schedule_wake_end(const struct capture *c, uint64_t tick)
{
	return divide_up((tick * c->wake_ticks / c->wake_of + 1) * c->wake_of, c->wake_ticks) - 1;
}

uint64_t schedule_ticks_between(const struct traced_process *t, uint64_t from, uint64_t to)
{
	return own_ticks(t, to) - own_ticks(t, from);
}

uint64_t schedule_tick_of(const struct traced_process *t, uint64_t tick)
{
	const uint64_t begin = schedule_wake_begin(t->capture, tick);
	const uint64_t end = schedule_wake_end(t->capture, tick);

	return begin > 0 && schedule_ticks_between(t, begin - 1, end) > 0 ? end : 0;
}

void schedule_woken(struct traced_process *t)
{
	t->schedule.awake_tick = t->ticks.span.last;
	schedule_at_once(t);
}

uint64_t schedule_elapsed_ticks(const struct traced_process *t, uint64_t tick)
{
	return schedule_ticks_between(t, t->ticks.span.last, tick);
}

struct tick_span schedule_span(const struct traced_process *t, uint64_t tick, uint64_t time_ns)
{
	const struct tick_span *before = &t->ticks.span;
	const uint64_t n = schedule_elapsed_ticks(t, tick);
	/* An event may have brought the look forward (schedule_at_once). */
	const uint64_t scheduled = min_u64(t->schedule.slept_tick, tick);
	struct tick_span span = {
		.last = tick,
		.last_ns = time_ns,
		.previous = before->last,
		.n = n,
		.length_ns = before->last_ns == 0 ? 0 : (time_ns - before->last_ns) / n,
		.slept = t->schedule.next_tick > before->last,
	};

	if (t->schedule.slept_tick > before->last)
		span.left_out = min_u64(schedule_elapsed_ticks(t, scheduled - 1), n - 1);
	return span;
}

static uint64_t tick_before(const struct tick_span *span, uint64_t back)
{
	return span->last - (span->last - span->previous) * back / span->n;
}

static uint64_t time_before(const struct tick_span *span, uint64_t back)
{
	return span->last_ns - span->length_ns * back;
}

struct covered_ticks schedule_covered(const struct tick_span *span, uint64_t awake_ns)
{
	uint64_t back = 0;

	if (span->slept)
		back = span->left_out -
		       min_u64(span->left_out, awake_ns / max_u64(span->length_ns, 1));
	return (struct covered_ticks){
		.n = 1 + back,
		.first = tick_before(span, back),
		.first_ns = time_before(span, back),
		.n_unchanged = span->left_out - back,
	};
}

struct covered_ticks schedule_first(const struct tick_span *span)
{
	const uint64_t back = span->n - 1 - span->left_out;

	return (struct covered_ticks){
		.n = 1, .first = tick_before(span, back), .first_ns = time_before(span, back)};
}

/*
 * Returns the process's next tick. 0: the very next tick, for a process that has no threads or is
 * in another phase.
 */
static uint64_t next_tick(const struct traced_process *t)
{
	const struct capture *c = t->capture;
	const struct share share = share_of(t);
	const uint64_t number = own_ticks(t, t->ticks.span.last) + 1;
	const uint64_t due = divide_up(divide_up(number * share.wakes, share.of_wakes) * c->wake_of,
				       c->wake_ticks);

	if (t->threads.n == 0 || t->phase != TRACED_SAMPLED)
		return 0;
	return max_u64(due, t->schedule.next_tick);
}

void schedule_target(struct traced_process *t)
{
	struct scheduled *scheduled = t->capture->targets + t->schedule.place;

	if (t->phase != TRACED_NEW)
		scheduled->tick = next_tick(t);
}

void schedule_all(struct capture *c)
{
	c->wake_ticks = 0;
	c->wake_of = 1;
	FOR_EACH_TARGET (t, c) {
		assert(t->schedule.rate_ticks > 0);
		if (t->schedule.rate_ticks * c->wake_of <= c->wake_ticks * t->schedule.rate_of)
			continue;
		c->wake_ticks = t->schedule.rate_ticks;
		c->wake_of = t->schedule.rate_of;
	}
	if (c->wake_ticks == 0)
		c->wake_ticks = 1;
	FOR_EACH_TARGET (t, c)
		schedule_target(t);
}

void schedule_at_once(struct traced_process *t)
{
	t->schedule.next_tick = 0;
	schedule_target(t);
}

/*
 * A process in which no thread has run for some ticks is looked at at every second tick only, after
 * twice as many ticks at every third, and so on. The more threads there are in total, the sooner
 * this begins, since each look costs some microseconds. "Every third" are the ticks whose number is
 * divisible by 3, so that sleeping processes are looked at in the same wakes. When the distance
 * changes, the next look comes sooner.
 *
 * If a look after n skipped ticks finds a thread running, the thread may have run for up to n
 * ticks. A thread that computes for less than one tick is found by one of n such looks. A thread
 * that has run for m whole ticks would be found by m more of them, and is looked at at each tick
 * from now on: so the look covers n - m ticks. On average over the begin within the n ticks,
 * samples cover as much time as the thread runs.
 */
#define SLEEP_AFTER_MIN 2
#define SLEEP_AFTER_MAX 128
#define SLEEP_THREADS	(1 << 12) /* divided by the number of threads */
#define SLEEP_TICKS_MAX 8

void schedule_after_tick(struct traced_process *t, uint64_t tick)
{
	uint64_t after, every;

	if (t->threads.asleep == NULL || t->threads.awake != NULL || t->reader.needs_reset) {
		t->schedule.awake_tick = tick;
		return;
	}
	after = SLEEP_THREADS / state_threads(t->capture);
	after = max_u64(min_u64(after, SLEEP_AFTER_MAX), SLEEP_AFTER_MIN);
	every = min_u64(1 + (tick - t->schedule.awake_tick) / after, SLEEP_TICKS_MAX);
	t->schedule.next_tick = (tick / every + 1) * every;
	t->schedule.slept_tick = t->schedule.next_tick;
}
