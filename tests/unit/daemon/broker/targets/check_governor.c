#include "daemon/broker/targets/governor.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/config/config.h"
#include "tests/unit/daemon/log_capture.h"
#include "tests/unit/daemon/broker/broker_builder.h"
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
	governor_compute_rates(costs, full_hz, n, budget, rates);
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
	ck_assert_uint_eq(rates[0], GOVERNOR_RATE_MIN_HZ);
	share(costs, 2, 0.0001, FULL);
	ck_assert_uint_eq(rates[0], GOVERNOR_RATE_MIN_HZ);
	ck_assert_uint_eq(rates[1], GOVERNOR_RATE_MIN_HZ);
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

	governor_compute_rates(costs, full_hz, 3, 0.06, rates);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_uint_le(rates[i], full_hz[i] / 2);
		ck_assert_uint_ge(rates[i], full_hz[i] * 4 / 10);
	}
	ck_assert_uint_eq(rates[2], GOVERNOR_RATE_MIN_HZ);
	governor_compute_rates(costs, full_hz, 3, 0.2, rates);
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
			ck_assert_uint_ge(rates[k], GOVERNOR_RATE_MIN_HZ);
			for (uint32_t d = 2; d < rates[k]; d++)
				ck_assert_uint_ne(rates[k] % d, 0);
		}
	}
	ck_assert_uint_gt(lowered, 1000);
}

/* Adds n seconds of the cost each. */
static void take(struct governor_cost *c, unsigned int n, double each)
{
	for (unsigned int i = 0; i < n; i++)
		governor_cost_add(c, each);
}

TEST(a_steady_cost_is_known_after_three_seconds)
{
	struct governor_cost c = {0};

	take(&c, 2, 0.1);
	ck_assert_double_eq(c.average, 0);
	take(&c, 1, 0.1);
	ck_assert_double_eq_tol(c.average, 0.1, 1e-9);
	take(&c, 100, 0.1);
	ck_assert_double_eq_tol(c.average, 0.1, 1e-9);
}

/* The cost of the first stacks of a large program, wherever the second begins. */
TEST(a_cost_that_occurs_once_does_not_count)
{
	for (unsigned int at = 0; at < 3; at++) {
		struct governor_cost c = {0};

		take(&c, at, 0.01);
		take(&c, 1, 0.8);
		take(&c, 3, 0.01);
		ck_assert_double_eq_tol(c.average, 0.01, 1e-9);
	}
}

TEST(the_cost_is_an_average_over_ten_seconds)
{
	struct governor_cost c = {0};

	/* Up to ten seconds, all count the same. */
	take(&c, 3, 0.01);
	take(&c, 1, 0.03);
	ck_assert_double_eq_tol(c.average, 0.02, 1e-9);
	take(&c, 2, 0.06);
	ck_assert_double_eq_tol(c.average, 0.04, 1e-9);
	memset(&c, 0, sizeof(c));
	take(&c, 60, 0.02);
	take(&c, 1, 0.22);
	ck_assert_double_eq_tol(c.average, 0.04, 1e-9);
	take(&c, 10, 0.22);
	ck_assert_double_ge(c.average, 0.12);
	take(&c, 40, 0.22);
	ck_assert_double_ge(c.average, 0.21);
}

/* A broker with targets, each with a number of samples per tick. */
static struct broker b;
static struct heartbeat heartbeat;

static void profile(size_t n)
{
	build_broker(&b);
	b.parts.children.heartbeat = &heartbeat;
	b.parts.state.timer_hz = FULL;
	b.parts.state.options.config.cpu_budget = 1;
	for (size_t i = 0; i < n; i++)
		b.parts.targets.table[i] = (struct target){
			.id = (uint32_t)i + 1,
			.slot = (uint32_t)i,
			.phase = TARGET_PROFILED,
			.full_hz = FULL,
			.rate_hz = FULL,
			.governed.lowest_hz = FULL,
		};
}

/* n seconds in which all processes together use this share of a processor. */
static void pass(unsigned int n, double share)
{
	const struct governor_used used = {.capture = share * 1e9};

	for (unsigned int i = 0; i < n; i++)
		governor_add_interval(&b.parts.targets, &used, NS_PER_SEC);
}

/* For example stops by a target's own signals. */
TEST(a_cost_that_no_rate_lowers_is_logged_as_exceeded)
{
	profile(1);
	log_capture_begin();
	pass(60, 0.05);
	ck_assert_uint_eq(
		log_capture_end("5.0 % of a processor, more than the budget of 1 %, although all "
				"targets are at the lowest rate"),
		1);
	ck_assert_uint_eq(b.parts.targets.table[0].rate_hz, GOVERNOR_RATE_MIN_HZ);
	ck_assert_uint_eq(b.parts.targets.table[0].governed.lowest_hz, GOVERNOR_RATE_MIN_HZ);
	ck_assert(b.parts.governor.is_exceeded);
	ck_assert_uint_ge(b.parts.targets.table[0].governed.exceeded_ns, 40 * NS_PER_SEC);
	ck_assert_uint_ge(b.parts.targets.table[0].governed.lowered_ns,
			  b.parts.targets.table[0].governed.exceeded_ns);
}

/* The lowest rate is kept and is within the budget. */
TEST(exceeded_time_ends_when_the_cost_is_within_the_budget)
{
	uint64_t exceeded;

	profile(2);
	pass(60, 0.05);
	ck_assert(b.parts.governor.is_exceeded);
	pass(60, 0.009);
	exceeded = b.parts.targets.table[1].governed.exceeded_ns;
	ck_assert(!b.parts.governor.is_exceeded);
	ck_assert_uint_eq(b.parts.targets.table[1].rate_hz, GOVERNOR_RATE_MIN_HZ);
	pass(20, 0.009);
	ck_assert_uint_eq(b.parts.targets.table[1].governed.exceeded_ns, exceeded);
}

/* A cost that a lower rate reduces does not count as exceeded. */
TEST(a_cost_that_a_lower_rate_saves_is_not_exceeded)
{
	profile(2);
	for (unsigned int i = 0; i < 60; i++)
		pass(1, 0.05 * b.parts.targets.table[0].rate_hz / FULL);
	ck_assert_uint_lt(b.parts.targets.table[0].rate_hz, FULL);
	ck_assert_uint_gt(b.parts.targets.table[0].rate_hz, GOVERNOR_RATE_MIN_HZ);
	ck_assert_uint_eq(b.parts.targets.table[0].governed.exceeded_ns, 0);
	ck_assert_uint_ge(b.parts.targets.table[0].governed.lowered_ns, 50 * NS_PER_SEC);
}

/* Nor does the cost before the lowest rate was set. */
TEST(a_cost_that_the_lowest_rate_saves_is_not_exceeded)
{
	profile(1);
	for (unsigned int i = 0; i < 60; i++)
		pass(1, 0.08 * b.parts.targets.table[0].rate_hz / FULL);
	ck_assert_uint_eq(b.parts.targets.table[0].rate_hz, GOVERNOR_RATE_MIN_HZ);
	ck_assert_uint_eq(b.parts.targets.table[0].governed.exceeded_ns, 0);
}

/* Nor does the cost of the first seconds, if the configured rate is low. */
TEST(the_cost_of_a_start_is_not_exceeded)
{
	profile(1);
	b.parts.targets.table[0].full_hz = GOVERNOR_RATE_MIN_HZ;
	b.parts.targets.table[0].rate_hz = GOVERNOR_RATE_MIN_HZ;
	pass(2, 0.3);
	pass(60, 0.005);
	ck_assert_uint_eq(b.parts.targets.table[0].governed.exceeded_ns, 0);
}

/* One line for all targets, and the next one a minute later. */
TEST(one_line_for_all_targets_is_logged_a_minute)
{
	profile(40);
	b.parts.state.options.config.cpu_budget = 5;
	log_capture_begin();
	for (unsigned int i = 0; i < 59; i++)
		pass(1, 0.2 * b.parts.targets.table[0].rate_hz / FULL);
	ck_assert_uint_lt(b.parts.targets.table[0].rate_hz, FULL);
	ck_assert_uint_eq(log_capture_end("budget 5 %: 40 of 40 targets are sampled at only "), 1);
	log_capture_begin();
	pass(30, 0.001);
	ck_assert_uint_eq(b.parts.targets.table[0].rate_hz, FULL);
	ck_assert_uint_eq(log_capture_end("CPU budget 5 %: all targets are sampled at their full "
					  "rates again\n"),
			  1);
	log_capture_begin();
	pass(20, 0.3);
	ck_assert_uint_lt(b.parts.targets.table[0].rate_hz, FULL);
	ck_assert_uint_eq(log_capture_end("budget 5 %"), 0);
	log_capture_begin();
	pass(45, 0.3);
	ck_assert_uint_eq(
		log_capture_end("budget 5 %: 40 of 40 targets are sampled at only 11 to 11 Hz "),
		1);
}

static struct instance instances[8];

/* Returns how many of n processes that start now are attached at once. */
static unsigned int admitted(unsigned int n, uint64_t now_ns)
{
	unsigned int of = 0;

	memset(instances, 0, sizeof(instances));
	for (unsigned int i = 0; i < n; i++)
		of += governor_admits(&b.parts.targets, &instances[i], now_ns);
	return of;
}

TEST(new_processes_wait_while_the_budget_is_exceeded)
{
	const uint64_t now_ns = 1000 * NS_PER_SEC;

	profile(0);
	log_capture_begin();
	pass(60, 0.009);
	ck_assert_uint_eq(admitted(8, now_ns), 8);
	/* One expensive second stays within the budget on an average over ten. */
	pass(1, 0.015);
	ck_assert_uint_eq(admitted(8, now_ns), 8);
	pass(20, 0.03);
	ck_assert_uint_eq(b.parts.governor.admission.delayed, 0);
	ck_assert_uint_eq(admitted(8, now_ns), 1);
	ck_assert_uint_eq(b.parts.governor.admission.delayed, 7);
	/* The same processes, which wait. */
	ck_assert(!governor_admits(&b.parts.targets, &instances[7], now_ns));
	ck_assert_uint_eq(b.parts.governor.admission.delayed, 7);
	ck_assert(governor_admits(&b.parts.targets, &instances[7], now_ns + GOVERNOR_ADMIT_NS));
	ck_assert(!governor_admits(&b.parts.targets, &instances[6], now_ns + GOVERNOR_ADMIT_NS));
	pass(60, 0.009);
	ck_assert_uint_eq(admitted(8, now_ns + GOVERNOR_ADMIT_NS), 8);
	ck_assert_uint_eq(log_capture_end("are attached later"), 1);
}

TEST(waiting_processes_are_logged_once_a_minute)
{
	profile(0);
	log_capture_begin();
	pass(30, 0.03);
	for (uint64_t s = 1000; s < 1000 + 150; s++)
		ck_assert_uint_eq(admitted(8, s * NS_PER_SEC), 1);
	ck_assert_uint_eq(log_capture_end("are attached later"), 3);
}

TEST(without_a_budget_no_process_waits)
{
	profile(0);
	b.parts.state.options.config.cpu_budget = 0;
	pass(30, 0.5);
	ck_assert_uint_eq(admitted(8, 1000 * NS_PER_SEC), 8);
}
