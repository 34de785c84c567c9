#include "daemon/unwind/exec_budget.h"

#include "tests/unit/suite.h"

#define START_NS 12345
#define EVERY_NS EXEC_BUDGET_EVERY_NS

static struct exec_budget budget;

static void set_up(void)
{
	budget = (struct exec_budget){0};
	exec_budget_begin(&budget, START_NS);
}

static bool take(uint64_t now_ns)
{
	return exec_budget_take(&budget, 1, now_ns);
}

/* It is told that a storm is over: of so many chunks. */
static uint64_t over(uint64_t now_ns)
{
	const uint64_t n = budget.held_back;

	exec_budget_log_end(&budget, 1, now_ns);
	return n - budget.held_back;
}

/* n programs from now_ns on, every_ns each. Returns how many are sent. */
static uint64_t run(uint64_t *now_ns, uint64_t n, uint64_t every_ns)
{
	uint64_t sent = 0;

	for (uint64_t i = 0; i < n; i++) {
		*now_ns += every_ns;
		sent += take(*now_ns);
		exec_budget_begin(&budget, *now_ns);
	}
	return sent;
}

FIXTURE(set_up, NULL)

/* A start of many programs is not touched, whatever their length. */
TEST(a_burst_is_sent)
{
	uint64_t now_ns = START_NS;

	ck_assert_uint_eq(run(&now_ns, EXEC_BUDGET_BURST, 1), EXEC_BUDGET_BURST);
	ck_assert_uint_eq(over(now_ns + EVERY_NS), 0);
	ck_assert_uint_eq(run(&now_ns, 1, 1), 0);
}

/* For an hour, 90 a second. */
TEST(a_storm_has_a_rate)
{
	const uint64_t every_ns = NS_PER_SEC / 90, n = UINT64_C(3600) * 90;
	uint64_t now_ns = START_NS, sent = run(&now_ns, n, every_ns);

	ck_assert_uint_eq(sent, EXEC_BUDGET_BURST + n * every_ns / EVERY_NS);
	ck_assert_uint_eq(over(now_ns + EVERY_NS), n - sent);
}

/* What had not to be used is not saved up for ever. */
TEST(no_more_than_a_burst_is_saved)
{
	uint64_t now_ns = START_NS;

	ck_assert_uint_eq(run(&now_ns, 1, 3600 * NS_PER_SEC), 1);
	ck_assert_uint_eq(run(&now_ns, 2 * EXEC_BUDGET_BURST, 1), EXEC_BUDGET_BURST - 1);
}

/* In the middle of a storm, one that stays. */
TEST(who_lives_is_sent)
{
	uint64_t now_ns = START_NS;

	for (int i = 0; i < 100; i++) {
		run(&now_ns, 2 * EXEC_BUDGET_BURST, 1);
		ck_assert_uint_eq(run(&now_ns, 1, EVERY_NS), 1);
	}
	/* All of those that do, and no other has to. */
	ck_assert_uint_eq(run(&now_ns, 100, EVERY_NS), 100);
	ck_assert_uint_eq(run(&now_ns, 1, EVERY_NS / 2), 0);
}

/* It is told once, when a program has lasted. */
TEST(the_end_of_a_storm)
{
	uint64_t now_ns = START_NS;

	run(&now_ns, EXEC_BUDGET_BURST + 7, 1);
	ck_assert_uint_eq(budget.held_back, 7);
	ck_assert_uint_eq(over(now_ns - 1), 0);
	ck_assert_uint_eq(over(now_ns + EVERY_NS - 1), 0);
	/* One without a chunk, too, was no end. */
	exec_budget_begin(&budget, now_ns + 1);
	ck_assert_uint_eq(over(now_ns + EVERY_NS), 0);
	ck_assert_uint_eq(over(now_ns + 1 + EVERY_NS), 7);
	ck_assert_uint_eq(over(now_ns + 2 * EVERY_NS), 0);
	/* The next is another one. */
	ck_assert_uint_eq(run(&now_ns, 3, 1), 0);
	ck_assert_uint_eq(budget.held_back, 3);
}

/* Ticks are in order; what is not does no harm. */
TEST(time_that_goes_back)
{
	uint64_t now_ns = START_NS;

	run(&now_ns, EXEC_BUDGET_BURST + 1, 1);
	ck_assert(!take(0));
	ck_assert(!take(now_ns));
	ck_assert_uint_eq(over(0), 0);
}
