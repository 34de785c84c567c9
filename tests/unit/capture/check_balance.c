#include "lib/capture/balance.h"

#include "lib/capture/state.h"
#include "tests/unit/suite.h"

#define TICK_NS (10 * NS_PER_MS)

static struct capture_counters counters;
static struct capture capture;
static struct traced_process process;
static uint64_t cpu_ns; /* of the process */
static struct thread a, b;

static int read_cpu_ns(int32_t pid, uint64_t *ret)
{
	(void)pid;
	*ret = cpu_ns;
	return 0;
}

static void set_up(void)
{
	counters = (struct capture_counters){0};
	cpu_ns = 0;
	capture = (struct capture){.options.process_ns = read_cpu_ns};
	process = (struct traced_process){.capture = &capture,
					  .counters = &counters,
					  .ticks.span = {.length_ns = TICK_NS, .n = 1},
					  .threads = {.n = 2}};
	a = b = (struct thread){
		.target = &process,
		.stop = {.in_call = true},
		.look = {.known = true, .mark = {.run_ns = 1, .wait_ns = 1, .slices = 1}},
	};
	balance_compare(&a);
	balance_compare(&b);
}

static void tear_down(void)
{
}

/* A tick at which the thread is told as this, and has run and waited so long until the next one. */
static enum activity_at_tick tick(struct thread *th, enum activity_at_tick may_be, uint64_t ran_ns,
				  uint64_t waited_ns)
{
	enum activity_at_tick told;

	told = may_be == ACTIVITY_WAITED ? balance_of_blocked(th, 1) : balance_of_stop(th, may_be);
	if (told == ACTIVITY_RAN)
		balance_tell_running(th, 1);
	if (told == ACTIVITY_WAS_READY)
		balance_tell_ready(th, 1);
	th->look.mark.run_ns += ran_ns;
	th->look.mark.wait_ns += waited_ns;
	th->look.mark.slices += ran_ns > 0;
	balance_compare(th);
	return told;
}

/* Returns at how many of n such ticks the thread was told as this. */
static unsigned int ticks(struct thread *th, enum activity_at_tick may_be, uint64_t ran_ns,
			  uint64_t waited_ns, enum activity_at_tick told)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < 1000; i++)
		n += tick(th, may_be, ran_ns, waited_ns) == told;
	return n;
}

FIXTURE(set_up, tear_down)

TEST(what_may_have_run_counts_as_running_until_it_is_too_much)
{
	/* Of each tick the thread runs a tenth, and waits for a processor the rest. */
	const unsigned int told =
		ticks(&a, ACTIVITY_MAY_HAVE_RUN, TICK_NS / 10, TICK_NS * 9 / 10, ACTIVITY_RAN);

	ck_assert_uint_ge(told, 100 + 7);
	ck_assert_uint_le(told, 100 + 9);
	/* What is certain is told, whatever the sums are. */
	ck_assert_uint_eq(ticks(&a, ACTIVITY_RAN, TICK_NS / 10, 0, ACTIVITY_RAN), 1000);
	ck_assert_uint_eq(ticks(&a, ACTIVITY_WAS_READY, 0, 0, ACTIVITY_WAS_READY), 1000);
	ck_assert_uint_eq(ticks(&a, ACTIVITY_WAITED, 0, 0, ACTIVITY_WAITED), 1000);
}

/* It did not wait for a processor either. */
TEST(a_surplus_of_both_times_means_waiting)
{
	/* 9 ticks are told as running, and 9 as ready. */
	ck_assert_uint_eq(ticks(&a, ACTIVITY_MAY_HAVE_RUN, 0, 0, ACTIVITY_WAITED), 1000 - 18);
	/* In user mode a thread does not wait for anything else. */
	a.stop.in_call = false;
	ck_assert_int_eq(balance_of_stop(&a, ACTIVITY_MAY_HAVE_RUN), ACTIVITY_WAS_READY);
}

TEST(a_surplus_of_one_thread_is_one_of_its_process)
{
	(void)ticks(&a, ACTIVITY_RAN, TICK_NS / 2, 0, ACTIVITY_RAN);
	ck_assert_int_eq(tick(&b, ACTIVITY_MAY_HAVE_RUN, 0, TICK_NS), ACTIVITY_WAS_READY);
}

TEST(what_ran_at_the_end_of_a_wait_has_no_surplus_that_chance_does_not_explain)
{
	/* Each look finds the thread running, which runs for a twentieth of the time. */
	a.stop.woken = true;
	ck_assert_uint_lt(ticks(&a, ACTIVITY_RAN, TICK_NS / 20, 0, ACTIVITY_RAN), 80);
	/* No such call says whether it ran. */
	a.stop.woken = false;
	ck_assert_uint_eq(ticks(&a, ACTIVITY_RAN, TICK_NS / 20, 0, ACTIVITY_RAN), 1000);
}

TEST(a_surplus_by_chance_stays)
{
	unsigned int told = 0;

	/* It runs for half of the time; at first each look finds it running. */
	a.stop.woken = true;
	for (unsigned int i = 0; i < 16; i++)
		told += tick(&a, ACTIVITY_RAN, TICK_NS / 2, 0) == ACTIVITY_RAN;
	ck_assert_uint_eq(told, 16);
}

/* Another thread's lack does not make a surplus. */
TEST(a_thread_has_no_more_than_its_own_time)
{
	(void)ticks(&b, ACTIVITY_WAITED, TICK_NS / 50, 0, ACTIVITY_WAITED);
	ck_assert_uint_eq(ticks(&a, ACTIVITY_MAY_HAVE_RUN, 0, TICK_NS, ACTIVITY_RAN), 9);
}

/* As of two threads that run at the same moment only while one of them falls asleep. */
TEST(a_lack_that_chance_does_not_explain_is_filled)
{
	const unsigned int told = ticks(&a, ACTIVITY_WAITED, TICK_NS / 2, 0, ACTIVITY_RAN);

	/* 500 ticks have run; once 30 are lacking, that is more than chance. */
	ck_assert_uint_ge(told, 500 - 3);
	ck_assert_uint_le(told, 500);
}

TEST(a_lack_after_a_long_time_is_found)
{
	for (unsigned int i = 0; i < 100; i++)
		(void)ticks(&a, ACTIVITY_RAN, TICK_NS, 0, ACTIVITY_RAN);
	/* Of computing threads nothing is chance. */
	ck_assert_uint_ge(ticks(&a, ACTIVITY_WAITED, TICK_NS / 2, 0, ACTIVITY_RAN), 500 - 3);
	/* Of two threads that run half of the time, 3 * 64 ticks are chance. */
	for (unsigned int i = 0; i < 100000; i++)
		(void)tick(&a, i % 2 ? ACTIVITY_RAN : ACTIVITY_WAITED, TICK_NS / 2, 0);
	ck_assert_uint_ge(ticks(&a, ACTIVITY_WAITED, TICK_NS, 0, ACTIVITY_RAN), 1000 - 3 * 64);
}

/* As of 32 threads that are woken, and wait for a processor, while a sleeper looks asleep. */
TEST(a_lack_of_ready_time_is_filled)
{
	const unsigned int told = ticks(&a, ACTIVITY_WAITED, 0, TICK_NS / 2, ACTIVITY_WAS_READY);

	ck_assert_uint_ge(told, 500 - 3);
	ck_assert_uint_le(told, 500);
	/* Running time comes first. */
	ck_assert_uint_ge(ticks(&a, ACTIVITY_WAITED, TICK_NS / 2, TICK_NS / 2, ACTIVITY_RAN),
			  500 - 3);
	ck_assert_uint_ge(ticks(&a, ACTIVITY_WAITED, TICK_NS / 2, TICK_NS / 2, ACTIVITY_WAS_READY),
			  500 - 3);
}

/* A program that sleeps half of the time, in phases that have nothing to do with the ticks. */
TEST(chance_is_not_filled)
{
	uint32_t random = 1;

	for (unsigned int i = 0; i < 100000; i++) {
		random = random * 1664525 + 1013904223;
		if (random >> 31)
			ck_assert_int_eq(tick(&a, ACTIVITY_RAN, TICK_NS / 2, 0), ACTIVITY_RAN);
		else
			ck_assert_int_eq(tick(&a, ACTIVITY_WAITED, TICK_NS / 2, 0),
					 ACTIVITY_WAITED);
	}
}

/* A main thread that waits for threads that begin and end between two ticks. */
TEST(a_thread_that_has_not_run_is_not_told_as_running)
{
	(void)ticks(&a, ACTIVITY_WAITED, TICK_NS / 2, 0, ACTIVITY_WAITED);
	ck_assert_uint_eq(ticks(&b, ACTIVITY_WAITED, 0, 0, ACTIVITY_WAITED), 1000);
}

/* It has had 20 ticks of running time, of which one was told. */
TEST(a_thread_that_sleeps_is_told_what_it_had_lately)
{
	(void)ticks(&b, ACTIVITY_WAITED, 0, 0, ACTIVITY_WAITED);
	(void)tick(&a, ACTIVITY_RAN, 20 * TICK_NS, 0);
	ck_assert_uint_eq(ticks(&a, ACTIVITY_WAITED, 0, 0, ACTIVITY_RAN), 18);
	/* What is lacking from earlier is told in turn with what it has: a tick for each. */
	(void)tick(&a, ACTIVITY_WAITED, TICK_NS / 10, 0);
	a.balance.run.lack_ns = process.balance.run.lack_ns = 50 * (int64_t)TICK_NS;
	process.balance.run.lacks = true;
	ck_assert_uint_eq(ticks(&a, ACTIVITY_WAITED, 0, 0, ACTIVITY_RAN), 1);
}

TEST(time_without_samples_is_in_no_sum)
{
	for (unsigned int i = 0; i < 1000; i++) {
		a.look.mark.run_ns += TICK_NS;
		a.look.mark.slices++;
		balance_forget(&a);
		balance_compare(&a);
	}
	ck_assert_int_eq(a.balance.run.lack_ns, 0);
	ck_assert_int_eq(process.balance.run.lack_ns, 0);
	ck_assert_uint_eq(process.balance.ticks_ns, 0);
}

/* Of a thread with a processor of its own only some marks are read. */
TEST(ticks_without_a_mark_are_compared_with_the_next_one)
{
	for (unsigned int i = 0; i < 1000; i++) {
		balance_tell_running(&a, 1);
		a.look.without_mark = i % 4;
		if (i % 4 == 0)
			a.look.mark.run_ns = 1 + (i + 1) * TICK_NS;
		balance_compare(&a);
	}
	ck_assert_int_eq(a.balance.run.lack_ns, 0);
}

/* The process runs this long in each of n ticks, of which half are told as running. */
static void read_clock(unsigned int n, uint64_t ran_ns)
{
	for (unsigned int i = 0; i < n; i++) {
		balance_tell_running(&a, i % 2);
		cpu_ns += ran_ns;
		process.ticks.span.last_ns += TICK_NS;
		balance_read_clock(&process);
	}
}

TEST(the_process_clock_is_compared_once_a_second)
{
	read_clock(1, TICK_NS);
	ck_assert_uint_eq(counters.compared_cpu_ns, 0);
	read_clock(99, TICK_NS);
	ck_assert_uint_eq(counters.compared_cpu_ns, 0);
	read_clock(101, TICK_NS);
	ck_assert_uint_eq(counters.compared_cpu_ns, 2 * NS_PER_SEC);
	ck_assert_uint_le(counters.compared_running_ns, NS_PER_SEC + TICK_NS);
	ck_assert_uint_ge(counters.compared_running_ns, NS_PER_SEC - TICK_NS);
}

TEST(a_second_without_all_samples_is_not_compared)
{
	read_clock(101, TICK_NS);
	ck_assert_uint_eq(counters.compared_cpu_ns, NS_PER_SEC);
	read_clock(50, TICK_NS);
	balance_forget(&a);
	/* The next second begins here. */
	read_clock(100, TICK_NS);
	ck_assert_uint_eq(counters.compared_cpu_ns, NS_PER_SEC);
	read_clock(1, TICK_NS);
	ck_assert_uint_eq(counters.compared_cpu_ns, 2 * NS_PER_SEC);
}

/* Capture was stopped: of the ticks since then one look tells, after this reading. */
TEST(a_second_with_late_ticks_is_not_compared)
{
	read_clock(101, TICK_NS);
	process.ticks.span.n = 700;
	process.ticks.span.left_out = 7;
	process.ticks.span.last_ns += 699 * TICK_NS;
	read_clock(1, 700 * TICK_NS);
	ck_assert_uint_eq(counters.compared_cpu_ns, NS_PER_SEC);
	/* All threads slept. */
	process.ticks.span.n = 8;
	read_clock(100, TICK_NS);
	ck_assert_uint_eq(counters.compared_cpu_ns, 2 * NS_PER_SEC);
}
