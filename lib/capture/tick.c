#include "lib/capture/target.h"

#include <sys/stat.h>

/* Nearly always there is a sign of an exec; if not, it is looked for this
 * often.
 */
#define DOUBT_TICKS 512

/*
 * Threads that were there before us are not all sampled at the first tick, but
 * so many in so long, a tick of 101 Hz: a first sample is a copy of more than
 * is of use, 30 KiB in 35 us as a rule, and readers give room back between
 * ticks only. Nothing is expected of a thread before its turn. It comes when
 * half of the ring is free; but a reader that does not get there in time is
 * none to wait for, and from then on what is lost is counted.
 */
#define FIRSTS_MAX     64
#define FIRSTS_NS      (9 * NS_PER_MS)
#define FIRSTS_WAIT_NS (2 * NS_PER_SEC)

/* Ticks between two comparisons of the number of threads. */
#define SCAN_TICKS 16

/* And, where more than a few are refused, until those are tried again. */
#define REFUSED_FEW   256
#define REFUSED_TICKS 128

/*
 * Looking at more threads than this takes is left for the next tick: where tens
 * of thousands are new, the others would have no ticks.
 */
#define LOOK_NS (20 * NS_PER_MS)

/*
 * Are there as many as at the last scan? Where nobody has run, nobody has come
 * or gone.
 */
static bool has_as_many(struct target *t)
{
	struct stat st;

	if (!t->stirred || fstat(t->task_fd, &st) < 0)
		return true;
	/* A link for each thread, and the two of a directory. */
	t->stirred =
		st.st_nlink >= 2 && st.st_nlink - 2 != t->n_threads + t->n_refused + t->n_left_out;
	return !t->stirred;
}

/* Threads made with CLONE_UNTRACED are not attached by the kernel. */
static void scan_for_threads(struct target *t, uint64_t tick, uint64_t time_ns)
{
	bool retry = t->n_refused > 0 && tick >= t->refused_tick;

	if (t->pass.dir != NULL && time_ns < t->scan_ns) {
		t->scan_tick = tick + 1;
		return;
	}
	if (t->held_up_ticks == 0 && !retry && has_as_many(t))
		return;
	t->refused_tick = tick + (t->n_refused > REFUSED_FEW ? REFUSED_TICKS : SCAN_TICKS);
	(void)!target_scan(t);
}

static void tell_anew(struct target *t, uint64_t tick, uint64_t time_ns)
{
	t->needs_reset = false;
	/* Who starts from nothing does not know who is gone. */
	t->n_gone = 0;
	if (!target_tell(t, RECORD_RESET, 0, tick, time_ns))
		return;
	while (t->asleep != NULL)
		thread_wake(t->asleep);
	for (struct thread *th = t->awake; th != NULL; th = th->next) {
		th->announced = false;
		th->unknown = false;
		th->stop_known = false;
	}
}

/* Those asleep are as they were, and that is all there is to say of them. */
static void count_sleepers(struct target *t)
{
	struct capture_counters *counters = t->counters;
	const uint64_t n = t->due_ticks * t->n_passed;

	counters->expected += n;
	if (t->needs_reset || t->sink->is_left)
		counters->missed[target_no_room(t)] += n;
	else
		counters->repeated += n;
}

/*
 * Of all ticks, the target with the highest rate has those at which the sum of
 * its rate, taken at each, comes past a whole number; of these ticks, by the
 * same rule, the others have theirs. So capture wakes at the highest rate, and
 * not at the sum of all. A target's rate is of_wakes / wakes of the highest.
 */
struct share {
	uint64_t of_wakes, wakes;
};

static struct share share_of(const struct target *t)
{
	const struct capture *c = t->capture;

	return (struct share){
		.of_wakes = t->rate_ticks * c->wake_of,
		.wakes = t->rate_of * c->wake_ticks,
	};
}

/* How many of the ticks up to this one are the target's. */
static uint64_t own_ticks(const struct target *t, uint64_t tick)
{
	const struct capture *c = t->capture;
	const struct share share = share_of(t);

	return tick * c->wake_ticks / c->wake_of * share.of_wakes / share.wakes;
}

/* How many since the last one at which it was looked at. */
static uint64_t ticks_due(const struct target *t, uint64_t tick)
{
	return own_ticks(t, tick) - own_ticks(t, t->last_tick);
}

static uint64_t divide_up(uint64_t a, uint64_t b)
{
	return (a + b - 1) / b;
}

/* 0: the next of all, since something is to be tried again. */
static uint64_t next_tick(const struct target *t)
{
	const struct capture *c = t->capture;
	const struct share share = share_of(t);
	const uint64_t number = own_ticks(t, t->last_tick) + 1;
	const uint64_t due = divide_up(divide_up(number * share.wakes, share.of_wakes) * c->wake_of,
				       c->wake_ticks);

	if (t->n_threads == 0 || t->phase != TARGET_SAMPLED)
		return 0;
	return max_u64(due, t->next_tick);
}

void target_plan(struct target *t)
{
	struct planned *planned = t->capture->targets + t->place;

	if (t->phase != TARGET_APART)
		planned->tick = next_tick(t);
}

void capture_find_wakes(struct capture *c)
{
	c->wake_ticks = 0;
	c->wake_of = 1;
	FOR_EACH_TARGET (t, c) {
		if (t->rate_ticks * c->wake_of <= c->wake_ticks * t->rate_of)
			continue;
		c->wake_ticks = t->rate_ticks;
		c->wake_of = t->rate_of;
	}
	if (c->wake_ticks == 0)
		c->wake_ticks = 1;
	FOR_EACH_TARGET (t, c)
		target_plan(t);
}

void target_hasten(struct target *t)
{
	t->next_tick = 0;
	target_plan(t);
}

/*
 * A process in which nobody has run for so many ticks is looked at at every
 * other one, after twice as many at every third, and so on: the sooner, the
 * more threads there are in all, since the kernel goes through all of a process
 * to tell its clock: 5 us for 20 whose memory is cold. Every third is one whose
 * number 3 divides, so that those that rest are looked at in the same wakes;
 * where the number of ticks changes, the next look comes sooner.
 *
 * What a look after n ticks, as many as there were, finds in one stands for all
 * of them: who computes for less than a tick is met by one of n such looks. Who
 * has done so for m whole ticks could have been met in m ways more, and will be
 * at each tick from here on: that stands for n - m. So of any stretch of time,
 * however long, as much is told as it takes, on the average over where in the n
 * it begins.
 */
#define REST_AFTER_MIN 2
#define REST_AFTER_MAX 128
#define REST_THREADS   (1 << 12) /* divided by how many there are */
#define REST_TICKS_MAX 8

static void rest(struct target *t, uint64_t tick)
{
	const struct capture *c = t->capture;
	uint64_t after, every;

	if (t->asleep == NULL || t->awake != NULL || t->needs_reset) {
		t->idle_tick = tick;
		return;
	}
	after = REST_THREADS / capture_threads(c);
	after = max_u64(min_u64(after, REST_AFTER_MAX), REST_AFTER_MIN);
	every = min_u64(1 + (tick - t->idle_tick) / after, REST_TICKS_MAX);
	t->next_tick = (tick / every + 1) * every;
	t->rest_tick = t->next_tick;
}

/*
 * What the look stands for at a thread that has been awake for so long since it
 * was asleep. If the look was not put off to this tick, something has happened,
 * and what is found is because of that.
 */
static struct stand stand_of(const struct target *t, uint64_t woke_ns)
{
	const struct delay *d = &t->delay;
	uint64_t back = 0;

	if (d->rested)
		back = d->left_out - min_u64(d->left_out, woke_ns / max_u64(d->tick_ns, 1));
	return (struct stand){
		.ticks = 1 + back,
		.tick = t->last_tick - (t->last_tick - d->since_tick) * back / t->due_ticks,
		.time_ns = t->last_ns - d->tick_ns * back,
		.before = d->left_out - back,
	};
}

/* False if a thread that was there before us has to wait for its turn. */
static bool has_its_turn(struct thread *th, uint64_t time_ns)
{
	const struct target *t = th->target;
	const struct ring_writer *ring = &t->sink->ring;
	struct capture *c = t->capture;

	if (th->life != THREAD_AWAITS_TURN)
		return true;
	if (c->firsts_ns == 0 || time_ns - c->firsts_ns >= FIRSTS_NS) {
		c->firsts_ns = time_ns;
		c->firsts_left = FIRSTS_MAX;
	}
	if (c->firsts_left == 0 ||
	    (ring_space(ring) < ring->size / 2 && time_ns - t->first_ns < FIRSTS_WAIT_NS))
		return false;
	c->firsts_left -= th->due != DUE_SAMPLE;
	th->life = THREAD_NEW;
	return true;
}

/*
 * Threads in a portion: few, as those that are interrupted stop meanwhile, and
 * wait for us; not too few, since to ask for stops goes through all threads.
 * Who is on the way to a stop already is no part of it.
 */
#define PORTION_MIN   4
#define PORTION_MAX   256 /* tens of thousands take longer than a heartbeat */
#define PORTION_SHARE 16

static void end_tick(struct target *t)
{
	t->capture->options.beat->touching = 0;
	if (t->phase == TARGET_ENDED)
		return;
	(void)target_tell_tick(t, t->last_tick, t->last_ns);
	t->counters->threads = t->n_threads;
	rest(t, t->last_tick);
}

/* One reading of the clock ends a target's time and begins the next one's. */
static void charge(struct target *t)
{
	struct capture *c = t->capture;
	const uint64_t now_ns = c->options.now_ns();

	t->counters->cost_ns += now_ns - c->charged_ns;
	c->charged_ns = now_ns;
	c->left_ns = now_ns;
}

/* All sleeping threads have been asked, or need not be. */
static void end_asking(struct target *t)
{
	t->asking = false;
	target_looked(t);
	count_sleepers(t);
}

bool target_tick(struct target *t, uint64_t tick, uint64_t time_ns)
{
	struct capture_counters *counters = t->counters;
	const struct capture *c = t->capture;
	/* Ticks may have been left out since, by its rate or its rest. */
	const uint64_t last_tick = t->last_tick, last_ns = t->last_ns;
	const bool rested = t->next_tick > last_tick;
	uint64_t ticks, since, left_out = 0;
	struct stand stand;

	if (tick <= last_tick || tick < t->next_tick)
		return false;
	if (t->phase == TARGET_AWAITS_EXEC)
		t->last_tick = tick;
	if (t->phase != TARGET_SAMPLED)
		return false;
	ticks = ticks_due(t, tick);
	if (ticks == 0)
		return false;
	since = c->charged_ns;
	if (t->rest_tick > last_tick)
		left_out = min_u64(ticks_due(t, min_u64(t->rest_tick, tick) - 1), ticks - 1);
	t->last_tick = tick;
	t->last_ns = time_ns;
	if (t->first_ns == 0)
		t->first_ns = time_ns;
	t->due_ticks = ticks;
	t->delay = (struct delay){
		.since_tick = last_tick,
		.tick_ns = last_ns == 0 ? 0 : (time_ns - last_ns) / ticks,
		.left_out = left_out,
		.rested = rested,
	};
	if (t->slow_until_ns < since)
		t->slow_until_ns = 0;
	counters->ticks += ticks;
	t->capture->options.beat->touching = t->id;
	if (!t->needs_reset)
		target_tell_gone(t, tick, time_ns);
	if (t->needs_reset)
		tell_anew(t, tick, time_ns);
	if (t->doubt || tick / DOUBT_TICKS != last_tick / DOUBT_TICKS) {
		t->doubt = false;
		target_look_for_exec(t);
	}
	if (tick >= t->scan_tick) {
		t->scan_tick = tick + SCAN_TICKS;
		scan_for_threads(t, tick, time_ns);
	}
	counters->refused = t->n_refused;
	counters->refused_error = (uint64_t)-t->refused_error;
	counters->expected += ticks * t->n_refused;
	counters->missed[MISSED_NOT_ATTACHED] += ticks * t->n_refused;
	stand = stand_of(t, 0);
	target_rename(t, stand.tick, stand.time_ns);
	target_look(t);
	t->next_awake = t->awake;
	t->n_visited = 0;
	t->asking = t->next_asleep != NULL;
	if (!t->asking)
		end_asking(t);
	if (!t->asking && t->awake == NULL)
		end_tick(t);
	charge(t);
	t->late_ns = c->charged_ns + LOOK_NS;
	return t->asking || t->awake != NULL;
}

static void visit(struct thread *th, bool late, uint64_t woke_ns)
{
	struct target *t = th->target;
	struct stand stand = {.ticks = 1, .tick = t->last_tick, .time_ns = t->last_ns};
	uint64_t ticks = 1;

	if (th->life == THREAD_DEAD || !has_its_turn(th, t->last_ns))
		return;
	if (th->life == THREAD_SEEN) {
		stand = stand_of(t, woke_ns);
		ticks = t->due_ticks;
	}
	/* The thread may have slept when target_rename left its name alone. */
	thread_rename(th, stand.tick, stand.time_ns);
	/* Was it this one that kept us from the processor? */
	if (th->life != THREAD_SEEN || ticks > stand.before + stand.ticks)
		thread_look_priority(th);
	th->life = THREAD_SEEN;
	t->counters->expected += ticks;
	if (late && th->due != DUE_SAMPLE)
		thread_missed(th, MISSED_LATE, ticks, t->last_tick, t->last_ns);
	else
		thread_look(th, ticks, &stand);
}

/* Sleeping threads that are asked whether they have run, in a portion. */
#define PORTION_ASKS 64

static void visit_asleep(struct target *t, bool late, uint64_t *left)
{
	unsigned int asks = PORTION_ASKS;
	struct thread *th;
	uint64_t woke_ns;

	while (*left > 0 && (th = target_next_that_ran(t, &asks, &woke_ns)) != NULL) {
		--*left;
		t->n_visited++;
		visit(th, late, woke_ns);
	}
	if (t->next_asleep == NULL)
		end_asking(t);
	else if (asks == 0)
		*left = 0;
}

static void visit_awake(struct target *t, bool late, uint64_t left)
{
	for (uint64_t n = 0; t->next_awake != NULL && left > 0 && n < PORTION_MAX; n++) {
		struct thread *th = t->next_awake;

		t->next_awake = th->next;
		left -= th->due != DUE_SAMPLE;
		t->n_visited++;
		visit(th, late, UINT64_MAX);
	}
}

bool target_tick_on(struct target *t)
{
	const struct capture *c = t->capture;
	const bool late = t->n_visited >= PORTION_MAX && c->charged_ns > t->late_ns;
	uint64_t left = min_u64(max_u64(t->n_threads / PORTION_SHARE, PORTION_MIN), PORTION_MAX);
	bool more;

	c->options.beat->touching = t->id;
	if (t->asking)
		visit_asleep(t, late, &left);
	if (!t->asking)
		visit_awake(t, late, left);
	more = t->asking || t->next_awake != NULL;
	if (!more)
		end_tick(t);
	else
		target_beat(t);
	charge(t);
	return more;
}
