#include "lib/capture/tick.h"

#include "lib/capture/attach.h"
#include "lib/capture/balance.h"
#include "lib/capture/exec.h"
#include "lib/capture/look.h"
#include "lib/capture/observe.h"
#include "lib/capture/priority.h"
#include "lib/capture/record.h"
#include "lib/capture/schedule.h"
#include "lib/capture/sleepers.h"
#include "lib/capture/slow_memory.h"
#include "lib/capture/state.h"
#include "lib/capture/tracees.h"
#include "lib/capture/watched_parts.h"

/*
 * Threads that existed before capture attached take turns: FIRSTS_MAX of them get their first
 * sample in each FIRSTS_NS (one tick at 101 Hz). A first sample copies more than needed, usually 30
 * KiB in 35 us, and readers free ring space only between ticks. A thread's samples are not expected
 * before its turn. A turn requires that half of the ring is free. After FIRSTS_WAIT_NS the threads
 * no longer wait for a slow reader, and lost samples are counted.
 */
#define FIRSTS_MAX     64
#define FIRSTS_NS      (9 * NS_PER_MS)
#define FIRSTS_WAIT_NS (2 * NS_PER_SEC)

/*
 * If the looks of a tick at one process have taken this time, the threads that are left miss the
 * tick, unless fewer than PORTION_MAX have had their turn. Without the limit, a process with tens
 * of thousands of new threads would leave other targets without ticks.
 *
 * Two rules let each thread have its turn after a tick that was cut short:
 * - The awake list is rotated, so that the next tick begins with the first awake thread that has
 *   missed this one (threads.begins_next).
 * - In the next tick the sleeping threads are checked after the awake ones (ticks.awake_first). If
 *   they came first, as they do otherwise, threads that run a little between all ticks could take
 *   the time of each tick.
 */
#define TICK_MAX_NS (20 * NS_PER_MS)

/* Counts the ticks of the sleeping threads. No record is written for them. */
static void count_sleepers(struct traced_process *t)
{
	struct capture_counters *counters = t->counters;
	const uint64_t n = t->ticks.span.n * t->threads.n_passed;

	counters->expected += n;
	if (t->reader.needs_reset || t->sink->reader_is_gone)
		counters->missed[record_no_room_reason(t)] += n;
	else
		counters->repeated += n;
}

/*
 * Returns true if the thread may be looked at: it does not wait for a turn, or takes its turn now.
 * Only threads that existed before capture attached wait.
 */
static bool take_turn(struct thread *th, uint64_t time_ns)
{
	const struct traced_process *t = th->target;
	const struct ring_writer *ring = &t->sink->ring;
	struct capture *c = t->capture;

	if (th->life != THREAD_AWAITS_TURN)
		return true;
	if (c->firsts.since_ns == 0 || time_ns - c->firsts.since_ns >= FIRSTS_NS) {
		c->firsts.since_ns = time_ns;
		c->firsts.left = FIRSTS_MAX;
	}
	if (c->firsts.left == 0 ||
	    (ring_space(ring) < ring->size / 2 && time_ns - t->ticks.first_ns < FIRSTS_WAIT_NS))
		return false;
	c->firsts.left--;
	tracees_set_life(th, THREAD_NEW);
	return true;
}

static void end_tick(struct traced_process *t)
{
	t->capture->options.beat->touching = 0;
	if (t->phase == TRACED_ENDED)
		return;
	(void)record_tick(t, t->ticks.span.last, t->ticks.span.last_ns);
	t->counters->threads = t->threads.n;
	schedule_after_tick(t, t->ticks.span.last);
}

/*
 * Charges the process for the time since charged_ns. The same reading of the clock begins the next
 * process's time.
 */
static void charge(struct traced_process *t)
{
	struct capture *c = t->capture;
	const uint64_t now_ns = c->options.now_ns();

	t->counters->cost_ns += now_ns - c->charged_ns;
	c->charged_ns = now_ns;
}

static void end_checks(struct traced_process *t)
{
	t->ticks.checking = false;
	sleepers_end_checks(t);
	count_sleepers(t);
}

/*
 * Looks for an exec that no stop has reported, new threads, and the end of the process. previous:
 * number of the tick before.
 */
static void check_threads(struct traced_process *t, uint64_t previous, uint64_t time_ns)
{
	const uint64_t tick = t->ticks.span.last;

	exec_check_tick(t, tick, previous);
	attach_check(t, tick, time_ns);
}

/* Writes what the reader has to know before the samples of this tick. */
static void begin_records(struct traced_process *t)
{
	const struct tick_span *span = &t->ticks.span;
	const struct covered_ticks covered = schedule_first(span);

	/* If capture comes late, a thread that has ended gets none of the late ticks. */
	if (!t->reader.needs_reset)
		record_exits(t, covered.first, covered.first_ns);
	/* record_exits() sets it if the ring has no room. */
	if (t->reader.needs_reset)
		record_reset(t, span->last, span->last_ns);
}

/* Counts the ticks, and those of threads that are not attached to. */
static void count_ticks(const struct traced_process *t)
{
	struct capture_counters *counters = t->counters;
	const uint64_t n = t->ticks.span.n * t->scan.n_refused;

	counters->ticks += t->ticks.span.n;
	counters->refused = t->scan.n_refused;
	counters->refused_error = (uint64_t)-t->scan.refused_error;
	counters->expected += n;
	counters->missed[MISSED_NOT_ATTACHED] += n;
}

/*
 * A tick of a withheld process (capture_withhold): all threads miss it, also those that wait for
 * their turn, since none comes. They are moved to the awake list: their marks grow old, and the
 * first tick that is sampled again looks at each thread.
 */
static void miss_tick(struct traced_process *t)
{
	const struct tick_span *span = &t->ticks.span;

	sleepers_wake_all(t);
	t->threads.next_awake = NULL;
	for (struct thread *th = t->threads.awake; th != NULL; th = th->next) {
		const uint64_t n = th->life == THREAD_SEEN ? span->n : 1;

		if (th->life == THREAD_DEAD)
			continue;
		t->counters->expected += n;
		record_missed(th, MISSED_BUDGET, n, span->last, span->last_ns);
	}
	end_tick(t);
	charge(t);
}

/* Begins to look at the threads. Returns false if none has to be looked at: the tick is over. */
static bool begin_looks(struct traced_process *t)
{
	/*
	 * Names get the earliest tick of any sample of this look: that of a thread that has just
	 * woken (awake_ns 0), whose look covers the most ticks.
	 */
	const struct covered_ticks covered = schedule_covered(&t->ticks.span, 0);
	bool more;

	record_rename_all(t, covered.first, covered.first_ns);
	balance_read_clock(t);
	sleepers_begin_tick(t);
	t->ticks.awake_first = t->ticks.is_late;
	t->ticks.is_late = false;
	if (t->threads.begins_next != NULL)
		sleepers_begin_with(t->threads.begins_next);
	t->threads.begins_next = NULL;
	t->threads.next_awake = t->threads.awake;
	t->ticks.n_visited = 0;
	t->ticks.checking = t->threads.next_asleep != NULL;
	if (!t->ticks.checking)
		end_checks(t);
	more = t->ticks.checking || t->threads.awake != NULL;
	if (!more)
		end_tick(t);
	charge(t);
	t->ticks.deadline_ns = t->capture->charged_ns + TICK_MAX_NS;
	return more;
}

bool tick_begin(struct traced_process *t, uint64_t tick, uint64_t time_ns)
{
	const uint64_t previous = t->ticks.span.last;

	if (tick <= previous || tick < t->schedule.next_tick)
		return false;
	if (t->phase == TRACED_AWAITS_EXEC) {
		t->ticks.span.last = tick;
		t->ticks.span.last_ns = time_ns;
		check_threads(t, previous, time_ns);
		return false;
	}
	if (t->phase != TRACED_SAMPLED || schedule_elapsed_ticks(t, tick) == 0)
		return false;
	t->ticks.span = schedule_span(t, tick, time_ns);
	if (t->ticks.first_ns == 0)
		t->ticks.first_ns = time_ns;
	slow_memory_begin_tick(t);
	t->capture->options.beat->touching = t->id;
	begin_records(t);
	check_threads(t, previous, time_ns);
	count_ticks(t);
	/* The process has executed a program with other rights (exec.h), or has ended. */
	if (t->phase != TRACED_SAMPLED) {
		end_tick(t);
		charge(t);
		return false;
	}
	if (t->is_withheld) {
		miss_tick(t);
		return false;
	}
	return begin_looks(t);
}

/* awake_ns: as of schedule_covered(). */
static void visit(struct thread *th, uint64_t awake_ns)
{
	struct traced_process *t = th->target;
	const struct tick_span *span = &t->ticks.span;
	struct covered_ticks covered = {.n = 1, .first = span->last, .first_ns = span->last_ns};
	uint64_t ticks = 1;

	/* Before the first look: while all threads sleep, the process maps no other file. */
	if (t->ticks.n_visited == 1)
		watched_parts_tick(t, span->last, span->last_ns);
	if (th->life == THREAD_DEAD || !take_turn(th, span->last_ns))
		return;
	if (th->life == THREAD_SEEN) {
		covered = schedule_covered(span, awake_ns);
		ticks = span->n;
	}
	/* record_rename_all may have skipped the thread while it slept. */
	record_rename(th, covered.first, covered.first_ns);
	/*
	 * If the look covers fewer ticks than have passed, capture came too late for the others.
	 * Perhaps this thread kept the tracer from the processor: so its priority is read.
	 */
	if (th->life != THREAD_SEEN || ticks > covered.n_unchanged + covered.n)
		priority_read(th);
	tracees_set_life(th, THREAD_SEEN);
	t->counters->expected += ticks;
	if (t->ticks.is_late && th->due != DUE_SAMPLE)
		record_missed(th, MISSED_LATE, ticks, span->last, span->last_ns);
	else if (t->capture->options.perf != NULL)
		observe_look(th, ticks, &covered);
	else
		look_at_thread(th, ticks, &covered);
}

/*
 * One call of tick_continue() looks at a portion of the threads; then the caller handles stops.
 * portion: the number of threads that it may still visit, without those that are interrupted
 * already. It is small, because the threads that it interrupts stop meanwhile and wait for the
 * tracer, and not too small, because each check for stops visits all threads. In all at most
 * PORTION_MAX are visited: tens of thousands would take longer than the heartbeat's period.
 */
#define PORTION_MIN   4
#define PORTION_MAX   256
#define PORTION_SHARE 16 /* of the threads of a process */
/* The number of sleeping threads that are checked in one call. */
#define PORTION_CHECKS 64

static uint64_t portion_of(const struct traced_process *t)
{
	return min_u64(max_u64(t->threads.n / PORTION_SHARE, PORTION_MIN), PORTION_MAX);
}

/*
 * A sleeping thread that has run is moved to the begin of the awake list, before next_awake: so it
 * is visited once.
 */
static void visit_asleep(struct traced_process *t, uint64_t *portion)
{
	unsigned int checks = PORTION_CHECKS;
	struct thread *th;
	uint64_t awake_ns;

	while (*portion > 0 && (th = sleepers_next_that_ran(t, &checks, &awake_ns)) != NULL) {
		--*portion;
		t->ticks.n_visited++;
		visit(th, awake_ns);
	}
	if (t->threads.next_asleep == NULL)
		end_checks(t);
}

static void visit_awake(struct traced_process *t, uint64_t portion)
{
	for (uint64_t n = 0; t->threads.next_awake != NULL && portion > 0 && n < PORTION_MAX; n++) {
		struct thread *th = t->threads.next_awake;

		t->threads.next_awake = th->next;
		if (t->ticks.is_late && t->threads.begins_next == NULL)
			t->threads.begins_next = th;
		portion -= th->due != DUE_SAMPLE;
		t->ticks.n_visited++;
		visit(th, UINT64_MAX);
	}
}

bool tick_continue(struct traced_process *t)
{
	const struct capture *c = t->capture;
	const bool awake_first = t->ticks.awake_first && t->threads.next_awake != NULL;
	uint64_t portion = portion_of(t);
	bool more;

	c->options.beat->touching = t->id;
	/* Even a process that is always late has looks at PORTION_MAX threads. */
	t->ticks.is_late =
		t->ticks.n_visited >= PORTION_MAX && c->charged_ns > t->ticks.deadline_ns;
	if (t->ticks.checking && !awake_first)
		visit_asleep(t, &portion);
	if (!t->ticks.checking || awake_first)
		visit_awake(t, portion);
	more = t->ticks.checking || t->threads.next_awake != NULL;
	if (!more)
		end_tick(t);
	else
		state_beat(t);
	charge(t);
	return more;
}
