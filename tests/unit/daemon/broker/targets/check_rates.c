#include "daemon/broker/targets/rates.h"

#include "lib/base/util.h"
#include "tests/unit/suite.h"

#define FULL 101

static uint32_t rates[8];

/* Returns what the targets cost at their rates. */
static double cost(const double *costs, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += costs[i] * rates[i] / FULL;
	return sum;
}

static void share(const double *costs, size_t n, double budget, uint32_t full)
{
	uint32_t full_hz[8];

	for (size_t i = 0; i < n; i++)
		full_hz[i] = full;
	rates_compute(costs, full_hz, n, budget, rates);
}

TEST(within_the_budget_all_targets_keep_their_rate)
{
	const double costs[] = {0.02, 0.0, 0.03};

	share(costs, 3, 0.05, FULL);
	for (size_t i = 0; i < 3; i++)
		ck_assert_uint_eq(rates[i], FULL);
	share(costs, 0, 0.05, FULL);
}

TEST(the_target_that_costs_most_is_lowered)
{
	const double costs[] = {0.001, 0.2, 0.002};

	share(costs, 3, 0.05, FULL);
	ck_assert_uint_eq(rates[0], FULL);
	ck_assert_uint_eq(rates[2], FULL);
	ck_assert_uint_lt(rates[1], FULL / 4);
	ck_assert_double_le(cost(costs, 3), 0.05);
	/* The rates are lowered no further than necessary. */
	ck_assert_double_ge(cost(costs, 3), 0.045);
}

TEST(lowered_targets_cost_the_same)
{
	const double costs[] = {0.04, 0.08, 0.01, 0.02};

	share(costs, 4, 0.08, FULL);
	ck_assert_uint_eq(rates[2], FULL);
	ck_assert_uint_eq(rates[3], FULL);
	ck_assert_double_eq_tol(costs[0] * rates[0], costs[1] * rates[1], 0.08);
	ck_assert_double_le(cost(costs, 4), 0.08);
	ck_assert_double_ge(cost(costs, 4), 0.075);
}

TEST(no_rate_is_below_the_minimum)
{
	const double costs[] = {3.0, 0.001};

	share(costs, 2, 0.01, FULL);
	ck_assert_uint_eq(rates[0], RATES_MIN_HZ);
	share(costs, 2, 0.0001, FULL);
	ck_assert_uint_eq(rates[0], RATES_MIN_HZ);
	ck_assert_uint_eq(rates[1], RATES_MIN_HZ);
	/* The configured rate is lower than the minimum. */
	share(costs, 2, 0.0001, 5);
	ck_assert_uint_eq(rates[0], 5);
	ck_assert_uint_eq(rates[1], 5);
}

/* Targets with the same cost at different full rates. */
TEST(each_target_has_its_own_full_rate)
{
	const uint32_t full_hz[] = {FULL, 499, 23};
	const double costs[] = {0.04, 0.04, 0.04};

	rates_compute(costs, full_hz, 3, 0.06, rates);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_uint_le(rates[i], full_hz[i] / 2);
		ck_assert_uint_ge(rates[i], full_hz[i] * 4 / 10);
	}
	ck_assert_uint_eq(rates[2], RATES_MIN_HZ);
	rates_compute(costs, full_hz, 3, 0.2, rates);
	for (size_t i = 0; i < 3; i++)
		ck_assert_uint_eq(rates[i], full_hz[i]);
}

/* At 20, 25 or 50 Hz a loop of the same rate would always be sampled at the same point. */
TEST(a_lowered_rate_is_a_prime)
{
	unsigned int lowered = 0;

	for (unsigned int i = 1; i < 1000; i++) {
		const double costs[] = {i / 1000.0, 0.3};

		share(costs, 2, 0.05, FULL);
		for (size_t k = 0; k < 2; k++) {
			lowered += rates[k] < FULL;
			ck_assert_uint_le(rates[k], FULL);
			ck_assert_uint_ge(rates[k], RATES_MIN_HZ);
			for (uint32_t d = 2; d < rates[k]; d++)
				ck_assert_uint_ne(rates[k] % d, 0);
		}
	}
	ck_assert_uint_gt(lowered, 1000);
}

#define NOBODY UINT32_MAX /* the target is not for a user */

/* A case of rates_share_out(): targets of sections, operators and users. */
struct shared {
	const char *what;
	double budget;
	struct {
		double cost;
		uint32_t user;
		/* The range of the rate; 0, 0: not sampled. */
		uint32_t least, most;
	} targets[8]; /* up to the first without a cost and a rate */
};

/* The floor of a cost of 0.101 at 101 Hz is 0.011. */
static const struct shared cases[] = {
	{"all fit",
	 0.1,
	 {{0.04, NOBODY, FULL, FULL}, {0.03, 1000, FULL, FULL}, {0.03, 1001, FULL, FULL}}},
	{"others come first, and users get what they leave",
	 0.1,
	 {{0.05, NOBODY, FULL, FULL}, {0.202, 1000, 19, 25}}},
	{"users have a fifth at least", 0.1, {{0.08, NOBODY, FULL, FULL}, {0.101, 1000, 17, 20}}},
	{"and no more if others need the rest",
	 0.1,
	 {{0.4, NOBODY, 17, 20}, {0.101, 1000, 17, 20}}},
	{"what users do not need of their fifth goes back",
	 0.1,
	 {{0.1, NOBODY, 97, 100}, {0.002, 1000, FULL, FULL}}},
	{"a user whose target does not fit is not sampled, which leaves all to the others",
	 0.05,
	 {{0.05, NOBODY, FULL, FULL}, {0.4, 1000, 0, 0}}},
	{"users have equal parts, whatever the number of their targets",
	 0.2,
	 {{0.1, 1000, FULL, FULL},
	  {0.1, 1001, 23, 25},
	  {0.1, 1001, 23, 25},
	  {0.1, 1001, 23, 25},
	  {0.1, 1001, 23, 25}}},
	{"what a user does not need goes to the other users",
	 0.1,
	 {{0.01, 1000, FULL, FULL}, {0.1, 1001, 43, 46}, {0.1, 1002, 43, 46}}},
	{"the target of a user that costs most gives way to the user's others",
	 0.05,
	 {{0.6, 1000, 0, 0}, {0.02, 1000, FULL, FULL}, {0.02, 1000, FULL, FULL}}},
	{"the part of a user whose target does not fit goes to the other users",
	 0.05,
	 {{0.6, 1000, 0, 0}, {0.05, 1001, FULL, FULL}}},
	{"of users who do not all fit, as many as possible are sampled",
	 0.05,
	 {{0.202, 1000, 11, 13}, {0.203, 1001, 11, 13}, {0.204, 1002, 0, 0}}},
	{"a cost that is not known yet is none",
	 0.05,
	 {{0, NOBODY, FULL, FULL}, {0, 1000, FULL, FULL}, {0.6, 1000, 0, 0}}},
	{"no rate but those of users becomes 0",
	 0.01,
	 {{0.6, NOBODY, RATES_MIN_HZ, RATES_MIN_HZ}, {0.6, 0, 0, 0}}},
};

TEST(users_share_what_sections_and_operators_leave)
{
	for (size_t k = 0; k < array_size(cases); k++) {
		const struct shared *c = &cases[k];
		struct rates_claim claims[8];
		size_t n = 0;

		for (; n < 8 && (c->targets[n].cost > 0 || c->targets[n].most > 0); n++)
			claims[n] = (struct rates_claim){
				.cost = c->targets[n].cost,
				.full_hz = FULL,
				.is_for_user = c->targets[n].user != NOBODY,
				.user = c->targets[n].user,
			};
		rates_share_out(claims, n, c->budget, rates);
		for (size_t i = 0; i < n; i++)
			ck_assert_msg(rates[i] >= c->targets[i].least &&
					      rates[i] <= c->targets[i].most,
				      "%s: target %zu has %u Hz", c->what, i, rates[i]);
	}
}

/* Whatever users' targets cost, the others are never lowered below four fifths of the budget. */
TEST(no_user_lowers_the_rate_of_a_section)
{
	for (unsigned int i = 1; i < 1000; i++) {
		struct rates_claim claims[8] = {{.cost = 0.04, .full_hz = FULL}};

		for (uint32_t k = 1; k < 8; k++)
			claims[k] = (struct rates_claim){.cost = i * k / 100.0,
							 .full_hz = FULL,
							 .is_for_user = true,
							 .user = 1000 + k % 3};
		rates_share_out(claims, 8, 0.05, rates);
		ck_assert_uint_eq(rates[0], FULL);
	}
}

TEST(the_level_is_what_one_may_use)
{
	const double costs[] = {0.01, 0.2, 0.3};

	ck_assert_double_eq_tol(rates_level(costs, 3, 0.21), 0.1, 1e-5);
	ck_assert_double_eq_tol(rates_level(costs, 3, 1), 0.3, 1e-9);
	ck_assert_double_eq(rates_level(costs, 0, 1), 0);
}
