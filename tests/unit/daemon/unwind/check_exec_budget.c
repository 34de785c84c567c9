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

/* Returns the number of chunks that a line at now_ns reports as held back; 0: no line. */
static uint64_t reported(uint64_t now_ns)
{
	const uint64_t n = budget.held_back;

	exec_budget_log_end(&budget, 1, now_ns);
	return n - budget.held_back;
}

/* Runs n programs from *now_ns on, each for every_ns. Returns how many chunks are allowed. */
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

/* However short the programs run. */
TEST(a_burst_of_chunks_is_allowed)
{
	uint64_t now_ns = START_NS;

	ck_assert_uint_eq(run(&now_ns, EXEC_BUDGET_BURST, 1), EXEC_BUDGET_BURST);
	ck_assert_uint_eq(reported(now_ns + EVERY_NS), 0);
	ck_assert_uint_eq(run(&now_ns, 1, 1), 0);
}

/* An hour with 90 execs a second. */
TEST(many_execs_get_one_chunk_in_ten_seconds)
{
	const uint64_t every_ns = NS_PER_SEC / 90, n = UINT64_C(3600) * 90;
	uint64_t now_ns = START_NS, sent = run(&now_ns, n, every_ns);

	ck_assert_uint_eq(sent, EXEC_BUDGET_BURST + n * every_ns / EVERY_NS);
	ck_assert_uint_eq(reported(now_ns + EVERY_NS), n - sent);
}

TEST(an_unused_budget_grows_no_larger_than_a_burst)
{
	uint64_t now_ns = START_NS;

	ck_assert_uint_eq(run(&now_ns, 1, 3600 * NS_PER_SEC), 1);
	ck_assert_uint_eq(run(&now_ns, 2 * EXEC_BUDGET_BURST, 1), EXEC_BUDGET_BURST - 1);
}

/* Also between many programs that run for a moment. */
TEST(a_program_that_ran_for_ten_seconds_is_always_allowed)
{
	uint64_t now_ns = START_NS;

	for (int i = 0; i < 100; i++) {
		run(&now_ns, 2 * EXEC_BUDGET_BURST, 1);
		ck_assert_uint_eq(run(&now_ns, 1, EVERY_NS), 1);
	}
	/* A program that ran for a shorter time is not. */
	ck_assert_uint_eq(run(&now_ns, 100, EVERY_NS), 100);
	ck_assert_uint_eq(run(&now_ns, 1, EVERY_NS / 2), 0);
}

TEST(the_end_of_holding_back_is_logged_once_a_program_stays)
{
	uint64_t now_ns = START_NS;

	run(&now_ns, EXEC_BUDGET_BURST + 7, 1);
	ck_assert_uint_eq(budget.held_back, 7);
	ck_assert_uint_eq(reported(now_ns - 1), 0);
	ck_assert_uint_eq(reported(now_ns + EVERY_NS - 1), 0);
	/* An exec without a chunk starts the time of a program anew, too. */
	exec_budget_begin(&budget, now_ns + 1);
	ck_assert_uint_eq(reported(now_ns + EVERY_NS), 0);
	ck_assert_uint_eq(reported(now_ns + 1 + EVERY_NS), 7);
	ck_assert_uint_eq(reported(now_ns + 2 * EVERY_NS), 0);
	/* The next chunks that are held back are counted from 0. */
	ck_assert_uint_eq(run(&now_ns, 3, 1), 0);
	ck_assert_uint_eq(budget.held_back, 3);
}

TEST(times_that_go_back_do_no_harm)
{
	uint64_t now_ns = START_NS;

	run(&now_ns, EXEC_BUDGET_BURST + 1, 1);
	ck_assert(!take(0));
	ck_assert(!take(now_ns));
	ck_assert_uint_eq(reported(0), 0);
}
