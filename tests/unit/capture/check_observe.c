#include "lib/capture/observe.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lib/capture/look.h"
#include "lib/capture/perf/perf.h"
#include "lib/capture/record.h"
#include "lib/capture/schedule.h"
#include "lib/capture/sleepers.h"
#include "lib/capture/state.h"
#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

/* Which samples of a thread are taken, for the ticks of samples in the order of their arrival. */
static const struct {
	uint64_t looked_at; /* the last tick that was looked at */
	uint64_t last;	    /* tick of the thread's last sample */
	bool has_kept;
	uint64_t tick; /* of the sample */
	enum observe_place place;
} places[] = {
	/* the first one */
	{10, 0, false, 11, OBSERVE_TAKE},
	/* one in each tick */
	{10, 10, false, 11, OBSERVE_TAKE},
	/* several ticks since the last look, because the process slept */
	{10, 11, false, 13, OBSERVE_TAKE},
	/* the second one of a tick: the thread has moved to another processor */
	{10, 11, false, 11, OBSERVE_KEEP},
	/* the third one */
	{10, 11, true, 11, OBSERVE_DROP},
	/* a kept one does not keep the next tick's own sample away */
	{10, 10, true, 11, OBSERVE_TAKE},
	/* too late: the tick has been looked at */
	{11, 0, false, 11, OBSERVE_KEEP},
	{11, 0, true, 11, OBSERVE_DROP},
	/* older than the last one */
	{10, 12, false, 11, OBSERVE_KEEP},
};

TESTS(the_place_of_a_sample, array_size(places))
{
	static struct record_sample kept;
	struct traced_process t = {.ticks.span.last = places[_i].looked_at};
	const struct thread th = {
		.target = &t,
		.observed = {.tick = places[_i].last, .kept = places[_i].has_kept ? &kept : NULL},
	};

	ck_assert_int_eq(observe_place(&th, places[_i].tick), places[_i].place);
}

/*
 * Samples come at the rate of the fastest target, one in each wake. Each wake of a target of the
 * same rate is one of its ticks; of a slower target as many as its rate says.
 */
TEST(samples_of_slower_targets)
{
	static const struct {
		uint32_t wake_ticks, wake_of, ticks, of;
	} rates[] = {{1, 1, 1, 1},
		     {1, 1, 1, 3},
		     {1, 1, 11, 101},
		     {50, 101, 50, 101},
		     {50, 101, 11, 101}};

	for (size_t i = 0; i < array_size(rates); i++) {
		struct capture *c = calloc(1, sizeof(*c));
		struct traced_process t = {.capture = c,
					   .schedule.rate_ticks = rates[i].ticks,
					   .schedule.rate_of = rates[i].of};
		uint64_t taken = 0, last = 0;

		ck_assert_ptr_nonnull(c);
		c->wake_ticks = rates[i].wake_ticks;
		c->wake_of = rates[i].wake_of;
		/* One sample of each wake, at its first tick. */
		for (uint64_t tick = c->wake_of; tick < 101 * 60;
		     tick = schedule_wake_end(c, tick) + 1) {
			const uint64_t end = schedule_wake_end(c, tick);
			const uint64_t at = schedule_tick_of(&t, tick);

			ck_assert_uint_eq(schedule_wake_begin(c, end),
					  schedule_wake_begin(c, tick));
			ck_assert_uint_eq(schedule_tick_of(&t, end), at);
			if (at == 0)
				continue;
			ck_assert_uint_eq(at, end);
			ck_assert_uint_gt(at, last);
			taken += last != 0;
			ck_assert_uint_eq(last == 0 ? 1 : schedule_ticks_between(&t, last, at), 1);
			last = at;
		}
		ck_assert_uint_le(taken, UINT64_C(101) * 60 * rates[i].ticks / rates[i].of);
		ck_assert_uint_ge(taken + 3 + rates[i].ticks,
				  UINT64_C(101) * 60 * rates[i].ticks / rates[i].of);
		free(c);
	}
}

/* A real process, sampled by perf events. */
static struct live l;

#define RING_BYTES (1u << 24)

static bool is_permitted(void)
{
	struct perf *perf;
	const bool is = perf_open(PERF_STACK_BYTES_MAX, &perf) == 0;

	if (is)
		perf_close(perf);
	return is;
}

static void set_up(void)
{
	l = (struct live){.pidfd = -1, .in = -1, .out = -1};
	OK(perf_open(PERF_STACK_BYTES_MAX, &l.perf));
	live_start(&l, "cap_threads", NULL, NULL);
	live_open(&l, RING_BYTES);
	OK(live_add(&l));
}

static void tear_down(void)
{
	if (l.capture == NULL)
		return;
	close_fd(&l.in);
	live_end(&l);
	perf_close(l.perf);
}

/* A tick of this moment: samples have the times of the real clock. */
static void tick_now(void)
{
	const uint64_t now_ns = clock_mono_ns();
	const struct tick tick = {
		.number = now_ns / LIVE_TICK_NS,
		.begin_ns = now_ns - now_ns % LIVE_TICK_NS,
		.period_ns = LIVE_TICK_NS,
		.due_ns = now_ns,
	};

	capture_tick(l.capture, &tick);
	live_patience();
}

static void ticks(uint64_t n)
{
	for (n += l.counters.ticks; l.counters.ticks < n;)
		tick_now();
}

FIXTURE(NULL, tear_down)

TEST_IF(an_exec_is_seen_without_a_stop, is_permitted())
{
	set_up();
	ticks(3);
	live_say(&l, "exec");
	while (l.execs == 0)
		tick_now();
	ticks(3);
	ck_assert_uint_eq(l.other_rights, 0);
	ck_assert_uint_eq(l.counters.threads, 1);
	ck_assert_uint_gt(l.counters.missed[MISSED_EXEC], 0);
	ck_assert_uint_eq(l.counters.stops + l.counters.event_stops, 0);
}

TEST_IF(a_program_with_other_rights_has_no_sample, is_permitted())
{
	uint64_t captured;

	set_up();
	/* A user's process that is not dumpable: after an exec its owner shows no rights. */
	capture_set_user(l.capture, LIVE_TARGET, getuid() + 1, getuid());
	ticks(3);
	captured = l.counters.captured;
	ck_assert_uint_gt(captured, 0);
	live_say(&l, "exec");
	while (l.other_rights == 0)
		tick_now();
	captured = l.counters.captured;
	for (int i = 0; i < 100; i++)
		tick_now();
	ck_assert_uint_eq(l.counters.captured, captured);
}

/* Until the exec is reported, its stack would be taken for one of the program before. */
TEST_IF(no_look_samples_a_program_that_is_not_known_yet, is_permitted())
{
	struct activity_place place;
	struct thread *th;

	set_up();
	ticks(3);
	ck_assert_uint_gt(l.counters.captured, 0);
	live_until_blocked(&l, l.pid);
	th = live_known(&l, l.pid);
	ck_assert_int_eq(activity_look(&th->activity, &place), ACTIVITY_BLOCKED);
	/* As if the process had executed another program. */
	th->target->exec.auxv.words[1]++;
	ck_assert_int_eq(look_sample_blocked(th, l.capture->tick.number, l.capture->tick.begin_ns,
					     &place, NULL),
			 -EAGAIN);
}

/* The tick n ticks after the last look. */
static void tick_after(const struct traced_process *t, uint64_t n)
{
	/* observe_begin_tick() goes back by one. */
	const uint64_t number = t->ticks.span.last + n + 1;
	const uint64_t begin_ns = t->ticks.span.last_ns + (n + 1) * LIVE_TICK_NS;
	const struct tick tick = {.number = number,
				  .begin_ns = begin_ns,
				  .period_ns = LIVE_TICK_NS,
				  .due_ns = begin_ns};

	capture_tick(l.capture, &tick);
	live_read(&l);
}

/* A sleeping thread of a process that was looked at. */
static struct thread *looked_at(void)
{
	set_up();
	ticks(3);
	live_until_blocked(&l, l.pid);
	ticks(1);
	live_read(&l);
	return live_known(&l, l.pid);
}

/* Until the rights were compared, a program with other rights may have run. */
TEST_IF(no_sample_from_before_a_comparison_of_rights_is_used, is_permitted())
{
	struct traced_process *t;
	uint64_t running;
	pid_t tid;

	set_up();
	tid = (pid_t)live_ask(&l, "busy 1", "ok");
	ticks(10);
	t = live_known(&l, tid)->target;
	capture_set_user(l.capture, LIVE_TARGET, geteuid(), geteuid());
	ck_assert_uint_gt(t->observed.compared_ns, 0);
	t->observed.compared_ns = clock_mono_ns() + 60 * NS_PER_SEC;
	/* One for a kept sample. */
	ticks(2);
	live_read(&l);
	running = live_thread(&l, tid)->running;
	ticks(5);
	live_read(&l);
	ck_assert_uint_eq(live_thread(&l, tid)->running, running);
	(void)live_ask(&l, "join", "ok");
	while (l.counters.threads > 1)
		tick_now();
}

/* What the thread did between its last sample and the look is not known. */
TEST_IF(a_sample_without_a_look_lasts_for_its_tick, is_permitted())
{
	struct thread *th = looked_at();
	const uint64_t missed = l.records[RECORD_MISSED];

	th->observed.tick = th->target->ticks.span.last + 1;
	th->observed.taken = 1;
	sleepers_wake(th);
	tick_after(th->target, 5);
	ck_assert_uint_eq(l.records[RECORD_MISSED], missed + 1);
}

/* The thread has moved to another processor, and then ended. */
TEST_IF(a_kept_sample_of_a_dead_thread_is_written, is_permitted())
{
	struct thread *th = looked_at();
	struct traced_process *t = th->target;
	const uint64_t samples = l.records[RECORD_SAMPLE];

	th->observed.tick = t->ticks.span.last + 1;
	th->observed.taken = 1;
	th->observed.kept = calloc(1, sizeof(*th->observed.kept));
	ck_assert_ptr_nonnull(th->observed.kept);
	th->observed.kept_size = sizeof(*th->observed.kept);
	th->observed.exits = true;
	sleepers_wake(th);
	tick_after(t, 1);
	ck_assert_uint_eq(l.records[RECORD_SAMPLE], samples);
	ck_assert_ptr_nonnull(live_known(&l, l.pid)->observed.kept);
	tick_after(t, 1);
	ck_assert_uint_eq(l.records[RECORD_SAMPLE], samples + 1);
}

/* After a miss the reader has no stack that could be ready. */
TEST_IF(a_thread_is_not_ready_after_a_miss, is_permitted())
{
	const struct activity_mark mark = {.run_ns = 1, .wait_ns = 1, .slices = 1};
	struct thread *th = looked_at();
	const struct tick_span *span = &th->target->ticks.span;

	live_script(&th->activity.schedstat_fd, "1 1 1\n");
	live_script(&th->activity.syscall_fd, "running\n");
	th->observed.mark = mark;
	th->observed.mark_known = true;
	record_missed(th, MISSED_LOST, 0, span->last, span->last_ns);
	while (l.counters.missed[MISSED_NO_STACK] == 0) {
		sleepers_wake(th);
		tick_now();
	}
	live_read(&l);
	ck_assert_uint_eq(l.records[RECORD_READY], 0);
}

TEST_IF(an_exec_whose_record_is_lost_is_found, is_permitted())
{
	struct thread *th = looked_at();

	/* As if it had executed another program. */
	th->target->exec.auxv.words[1]++;
	sleepers_wake(th);
	ticks(1);
	ck_assert_uint_eq(l.execs, 0);
	ck_assert_uint_gt(l.counters.missed[MISSED_EXEC], 0);
	/* It is found by the next look or sample, which may not be in the next tick. */
	while (l.execs == 0)
		ticks(1);
	ticks(2);
	ck_assert_uint_eq(l.execs, 1);
}

/* Names fill the ring of this test's processor. */
TEST_IF(after_lost_records_children_are_looked_for, is_permitted())
{
	l = (struct live){.pidfd = -1, .in = -1, .out = -1, .follow_children = true, .born = -1};
	OK(perf_open(PERF_STACK_BYTES_MAX, &l.perf));
	live_start(&l, "cap_threads", NULL, NULL);
	live_open(&l, RING_BYTES);
	OK(live_add(&l));
	ticks(1);
	while (l.born != 0) {
		for (int i = 0; i < 40000; i++)
			OK(prctl(PR_SET_NAME, "a long name ..."));
		tick_now();
	}
}

/* A look comes after the end of its tick: a thread that is dead by then may have run meanwhile. */
TEST_IF(a_thread_found_dead_ends_after_its_next_samples, is_permitted())
{
	struct thread *th;

	set_up();
	ticks(3);
	live_until_blocked(&l, l.pid);
	th = live_known(&l, l.pid);
	/* As if it were dead. */
	close_fd(&th->activity.syscall_fd);
	sleepers_wake(th);
	ticks(1);
	live_read(&l);
	ck_assert_ptr_eq(live_known(&l, l.pid), th);
	ck_assert_uint_eq(l.records[RECORD_EXIT], 0);
	ticks(1);
	live_read(&l);
	ck_assert_uint_eq(l.records[RECORD_EXIT], 1);
}

TEST_IF(the_end_of_the_process_is_seen, is_permitted())
{
	set_up();
	ticks(3);
	close_fd(&l.in);
	while (l.gone == 0)
		tick_now();
}
