#include "lib/capture/account.h"

#include "lib/base/clock.h"
#include "tests/unit/suite.h"

#define TICK (10 * NS_PER_MS)

static struct account a;
static uint64_t run_ns, now_ns, told_ns;
static bool runs;

static void set_up(void)
{
	a = (struct account){0};
	run_ns = 5 * NS_PER_SEC;
	now_ns = NS_PER_SEC;
	told_ns = 0;
	runs = false;
}

/* A look, so long after the one before, in which it has run for that long. */
static void look(uint64_t after_ns, uint64_t ran_ns)
{
	now_ns += after_ns;
	run_ns += ran_ns;
	if (runs)
		told_ns += after_ns;
	account_look(&a, run_ns, now_ns, TICK);
	account_end(&a, now_ns);
}

/* The same, and it can run: it is given the tick or not. */
static bool tick(uint64_t ran_ns)
{
	look(TICK, ran_ns);
	runs = account_has_run(&a, TICK);
	if (runs)
		account_begin(&a, now_ns);
	return runs;
}

/* It is blocked. */
static void sleep_through(uint64_t ran_ns)
{
	look(TICK, ran_ns);
	runs = false;
}

/* Our pauses, and what the scheduler has not written down, make no gaps. */
START_TEST(who_always_runs_is_told_so)
{
	unsigned int gaps = 0;

	for (unsigned int i = 0; i < 1000; i++)
		gaps += !tick(i % 2 == 0 ? TICK / 2 : TICK * 3 / 2 - 100000);
	/* 100 us in two ticks, of which three looks' worth is forgiven. */
	ck_assert_uint_le(gaps, 4);
}
END_TEST

/* At a tick at which it was not asked for what it has run meanwhile. */
static bool guessed_tick(uint64_t ran_ns)
{
	now_ns += TICK;
	run_ns += ran_ns;
	if (runs)
		told_ns += TICK;
	account_guess(&a, now_ns, TICK);
	account_end(&a, now_ns);
	runs = account_has_run(&a, TICK);
	if (runs)
		account_begin(&a, now_ns);
	return runs;
}

/* Asked at one tick of four, or at each: one and the same. */
START_TEST(who_goes_on_as_it_did_need_not_be_asked)
{
	unsigned int gaps = 0;

	for (unsigned int i = 0; i < 2; i++)
		(void)tick(TICK);
	ck_assert(a.has_share);
	for (unsigned int i = 0; i < 1000; i++)
		gaps += !(i % 4 == 3 ? tick(TICK) : guessed_tick(TICK));
	ck_assert_uint_eq(gaps, 0);
	for (uint64_t n = 2; n <= 64; n *= 2) {
		set_up();
		for (unsigned int i = 0; i < 6400; i++)
			(void)(i < 2 || i % 4 == 3
				       ? tick(i % n == 0 ? TICK : 0)
				       : guessed_tick(i % n == 0 ? TICK : 0));
		ck_assert_uint_ge(told_ns, 6400 * TICK / n - 6 * TICK);
		ck_assert_uint_le(told_ns, 6400 * TICK / n + 6 * TICK);
	}
}
END_TEST

/* What it is guessed to have run, and has not, is asked back; and more is owed.
 */
START_TEST(a_guess_ends_with_the_next_answer)
{
	(void)tick(TICK);
	(void)tick(TICK);
	for (unsigned int i = 0; i < 3; i++)
		ck_assert(guessed_tick(0));
	look(TICK, 0);
	/* Told for four ticks and the one before, and has run for two. */
	ck_assert_int_eq(a.owed_ns, -4 * (int64_t)TICK);
	set_up();
	look(TICK, 0);
	look(TICK, 0);
	for (unsigned int i = 0; i < 3; i++) {
		run_ns += TICK;
		now_ns += TICK;
		account_guess(&a, now_ns, TICK);
	}
	ck_assert_int_eq(a.owed_ns, 0);
	look(TICK, TICK);
	ck_assert_int_eq(a.owed_ns, 4 * (int64_t)TICK);
}
END_TEST

/* As much as it ran, however many share its processor. */
START_TEST(who_shares_a_processor_is_told_its_part)
{
	for (uint64_t n = 2; n <= 64; n *= 2) {
		set_up();
		for (unsigned int i = 0; i < 6400; i++)
			(void)tick(i % n == 0 ? TICK : 0);
		ck_assert_uint_ge(told_ns, 6400 * TICK / n - 4 * TICK);
		ck_assert_uint_le(told_ns, 6400 * TICK / n + 4 * TICK);
	}
}
END_TEST

/* It has no debt from the time in which others have the processor. */
START_TEST(who_gets_its_processor_back_is_told_soon)
{
	for (unsigned int i = 0; i < 1000; i++)
		(void)tick(0);
	ck_assert_uint_le(told_ns, 4 * TICK);
	(void)tick(TICK);
	(void)tick(TICK);
	ck_assert(tick(TICK));
}
END_TEST

/* Who can run and is found blocked at each tick is not made up for at once. */
START_TEST(what_could_not_be_told_is_forgotten)
{
	unsigned int told = 0;

	for (unsigned int i = 0; i < 1000; i++)
		sleep_through(TICK / 2);
	for (unsigned int i = 0; i < 1000; i++)
		told += tick(0);
	ck_assert_uint_ge(told, 60);
	ck_assert_uint_le(told, 70);
}
END_TEST

/* Ticks that the sampler left out are told by the sample before. */
START_TEST(what_is_told_for_long_is_asked_back)
{
	(void)tick(TICK);
	ck_assert(runs);
	look(20 * TICK, 0);
	runs = false;
	for (unsigned int i = 0; i < 16; i++)
		ck_assert(!tick(TICK));
	ck_assert(tick(TICK) || tick(TICK));
	/* Not for ever. */
	set_up();
	(void)tick(TICK);
	look(5000 * TICK, 0);
	runs = false;
	for (unsigned int i = 0; i < 70; i++)
		(void)tick(TICK);
	ck_assert(runs);
}
END_TEST

/* 5 % of a processor, met by chance: told as often as it is met. */
START_TEST(who_runs_now_and_then_is_told_as_much)
{
	uint64_t random = 1, ran = 0;

	for (unsigned int i = 0; i < 200000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		ran += TICK / 20;
		if ((random >> 33) % 20 == 0)
			(void)tick(TICK / 20);
		else
			sleep_through(TICK / 20);
	}
	ck_assert_uint_ge(told_ns, ran * 97 / 100);
	ck_assert_uint_le(told_ns, ran * 101 / 100);
}
END_TEST

/* Another thread by the same number, or a clock that is odd. */
START_TEST(what_goes_back_is_nothing)
{
	account_look(&a, 100 * TICK, now_ns, TICK);
	account_look(&a, 1, now_ns + TICK, TICK);
	ck_assert_int_eq(a.owed_ns, 0);
	ck_assert(!a.has_share);
	account_look(&a, 1 + TICK, now_ns + 2 * TICK, TICK);
	ck_assert_int_eq(a.owed_ns, TICK);
	account_begin(&a, now_ns);
	account_end(&a, now_ns - 1);
	ck_assert_int_eq(a.owed_ns, TICK);
	account_end(&a, now_ns + TICK);
	ck_assert_int_eq(a.owed_ns, TICK);
	/* Before the second tick it is not known how long one is. */
	a = (struct account){0};
	account_look(&a, 100 * TICK, now_ns, 0);
	ck_assert(account_has_run(&a, 0));
}
END_TEST

/* Not met on its processor for ten looks: then it is told at any. */
START_TEST(who_is_never_met_is_told_all_the_same)
{
	unsigned int n = 0;

	look(TICK, 0);
	while (!account_is_behind(&a, TICK)) {
		look(TICK, TICK);
		ck_assert_uint_le(++n, 10);
	}
	ck_assert_uint_ge(n, 5);
	account_begin(&a, now_ns);
	look(n * TICK, 0);
	ck_assert(!account_is_behind(&a, TICK));
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("account");
	TCase *tc = tcase_create("bars");

	tcase_add_checked_fixture(tc, set_up, NULL);
	tcase_add_test(tc, who_always_runs_is_told_so);
	tcase_add_test(tc, who_goes_on_as_it_did_need_not_be_asked);
	tcase_add_test(tc, a_guess_ends_with_the_next_answer);
	tcase_add_test(tc, who_shares_a_processor_is_told_its_part);
	tcase_add_test(tc, who_gets_its_processor_back_is_told_soon);
	tcase_add_test(tc, what_could_not_be_told_is_forgotten);
	tcase_add_test(tc, what_is_told_for_long_is_asked_back);
	tcase_add_test(tc, who_runs_now_and_then_is_told_as_much);
	tcase_add_test(tc, what_goes_back_is_nothing);
	tcase_add_test(tc, who_is_never_met_is_told_all_the_same);
	suite_add_tcase(s, tc);
	return s;
}
