#include "daemon/broker/targets/governor.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/broker/targets/rates.h"
#include "daemon/config/config.h"
#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/daemon/log_capture.h"
#include "tests/unit/suite.h"

#define FULL 101

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

/* A broker with targets. Each has an unwind process of its own. */
static struct broker b;
static struct heartbeat heartbeat;
static struct instance profiled[HEARTBEAT_SLOTS];
static struct unwind unwinds[HEARTBEAT_SLOTS];

static void profile(size_t n)
{
	build_broker(&b);
	b.modules.children.heartbeat = &heartbeat;
	b.modules.state.timer_hz = FULL;
	b.modules.state.options.config.cpu_budget = 1;
	memset(profiled, 0, sizeof(profiled));
	memset(unwinds, 0, sizeof(unwinds));
	for (size_t i = 0; i < n; i++) {
		profiled[i].targets = &b.modules.targets;
		profiled[i].run = &b.modules.targets.table[i];
		unwinds[i].child.fd = -1;
		b.modules.children.unwinds[b.modules.children.n_unwinds++] = &unwinds[i];
		b.modules.targets.table[i] = (struct run){
			.id = (uint32_t)i + 1,
			.slot = (uint32_t)i,
			.instance = &profiled[i],
			.unwind = &unwinds[i],
			.statm_fd = -1,
			.phase = RUN_PROFILED,
			.full_hz = FULL,
			.rate_hz = FULL,
			.governed.lowest_hz = FULL,
		};
	}
}

static struct run *target_at(size_t at)
{
	return &b.modules.targets.table[at];
}

/* A user who is no operator has attached the process of a target. */
static void give_to_user(size_t at, uint32_t uid)
{
	profiled[at].is_sampled = profiled[at].is_started = true;
	profiled[at].wish = INSTANCE_WISH_ATTACHED;
	profiled[at].asker = (struct instance_asker){.is_set = true, .uid = uid, .user = uid};
}

/*
 * n seconds in which the unwind process of each target uses its cost at the full rate, less at a
 * lower one. busy: how many processors each target's process uses.
 */
static void unwind_for(unsigned int n, const double *costs, const double *busy)
{
	const struct governor_used used = {0};

	for (unsigned int s = 0; s < n; s++) {
		for (size_t i = 0; i < b.modules.children.n_unwinds; i++) {
			struct run *run = target_at(i);
			const double rate = (double)run->rate_hz / FULL;

			unwinds[i].child.governed_used_ns = (uint64_t)(costs[i] * rate * 1e9);
			run->usage.time_ns += NS_PER_SEC;
			run->usage.cpu_ns += (uint64_t)(busy[i] * 1e9);
		}
		governor_add_interval(&b.modules.targets, &used, NS_PER_SEC);
	}
}

/* n seconds in which all processes together use this share of a processor. */
static void pass(unsigned int n, double share)
{
	const struct governor_used used = {.capture = share * 1e9};

	for (unsigned int i = 0; i < n; i++)
		governor_add_interval(&b.modules.targets, &used, NS_PER_SEC);
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
	ck_assert_uint_eq(b.modules.targets.table[0].rate_hz, RATES_MIN_HZ);
	ck_assert_uint_eq(b.modules.targets.table[0].governed.lowest_hz, RATES_MIN_HZ);
	ck_assert(b.modules.governor.is_exceeded);
	ck_assert_uint_ge(b.modules.targets.table[0].governed.exceeded_ns, 40 * NS_PER_SEC);
	ck_assert_uint_ge(b.modules.targets.table[0].governed.lowered_ns,
			  b.modules.targets.table[0].governed.exceeded_ns);
}

/* The lowest rate is kept and is within the budget. */
TEST(exceeded_time_ends_when_the_cost_is_within_the_budget)
{
	uint64_t exceeded;

	profile(2);
	pass(60, 0.05);
	ck_assert(b.modules.governor.is_exceeded);
	pass(60, 0.009);
	exceeded = b.modules.targets.table[1].governed.exceeded_ns;
	ck_assert(!b.modules.governor.is_exceeded);
	ck_assert_uint_eq(b.modules.targets.table[1].rate_hz, RATES_MIN_HZ);
	pass(20, 0.009);
	ck_assert_uint_eq(b.modules.targets.table[1].governed.exceeded_ns, exceeded);
}

TEST(nothing_exceeds_a_budget_that_a_reload_has_removed)
{
	uint64_t exceeded;

	profile(1);
	pass(60, 0.05);
	ck_assert(b.modules.governor.is_exceeded);
	b.modules.state.options.config.cpu_budget = 0;
	pass(1, 0.05);
	exceeded = b.modules.targets.table[0].governed.exceeded_ns;
	pass(30, 0.05);
	ck_assert(!b.modules.governor.is_exceeded);
	ck_assert_uint_eq(b.modules.targets.table[0].governed.exceeded_ns, exceeded);
	b.modules.state.options.config.cpu_budget = 1;
	log_capture_begin();
	pass(60, 0.05);
	ck_assert_uint_eq(log_capture_end("more than the budget of 1 %"), 1);
}

/* A cost that a lower rate reduces does not count as exceeded. */
TEST(a_cost_that_a_lower_rate_saves_is_not_exceeded)
{
	profile(2);
	for (unsigned int i = 0; i < 60; i++)
		pass(1, 0.05 * b.modules.targets.table[0].rate_hz / FULL);
	ck_assert_uint_lt(b.modules.targets.table[0].rate_hz, FULL);
	ck_assert_uint_gt(b.modules.targets.table[0].rate_hz, RATES_MIN_HZ);
	ck_assert_uint_eq(b.modules.targets.table[0].governed.exceeded_ns, 0);
	ck_assert_uint_ge(b.modules.targets.table[0].governed.lowered_ns, 50 * NS_PER_SEC);
}

/* Nor does the cost before the lowest rate was set. */
TEST(a_cost_that_the_lowest_rate_saves_is_not_exceeded)
{
	profile(1);
	for (unsigned int i = 0; i < 60; i++)
		pass(1, 0.08 * b.modules.targets.table[0].rate_hz / FULL);
	ck_assert_uint_eq(b.modules.targets.table[0].rate_hz, RATES_MIN_HZ);
	ck_assert_uint_eq(b.modules.targets.table[0].governed.exceeded_ns, 0);
}

/* Nor does the cost of the first seconds, if the configured rate is low. */
TEST(the_cost_of_a_start_is_not_exceeded)
{
	profile(1);
	b.modules.targets.table[0].full_hz = RATES_MIN_HZ;
	b.modules.targets.table[0].rate_hz = RATES_MIN_HZ;
	pass(2, 0.3);
	pass(60, 0.005);
	ck_assert_uint_eq(b.modules.targets.table[0].governed.exceeded_ns, 0);
}

/* A user who runs it by hand knows the option, and not the key of a service. */
TEST(the_line_of_one_process_names_the_option)
{
	profile(1);
	b.modules.state.options.config.cpu_budget = 5;
	b.modules.state.options.n_pids = 1;
	log_capture_begin();
	pass(20, 10);
	ck_assert_uint_eq(log_capture_end("CPU budget 5 %: the process is sampled at only 11 Hz "
					  "(--cpu-budget)\n"),
			  1);
}

/* One line for all targets, and the next one a minute later. */
TEST(one_line_for_all_targets_is_logged_a_minute)
{
	profile(40);
	b.modules.state.options.config.cpu_budget = 5;
	log_capture_begin();
	for (unsigned int i = 0; i < 59; i++)
		pass(1, 0.2 * b.modules.targets.table[0].rate_hz / FULL);
	ck_assert_uint_lt(b.modules.targets.table[0].rate_hz, FULL);
	ck_assert_uint_eq(log_capture_end("budget 5 %: 40 of 40 processes are sampled at only "),
			  1);
	log_capture_begin();
	pass(30, 0.001);
	ck_assert_uint_eq(b.modules.targets.table[0].rate_hz, FULL);
	ck_assert_uint_eq(log_capture_end("CPU budget 5 %: all processes are sampled at their full "
					  "rates again\n"),
			  1);
	log_capture_begin();
	pass(20, 0.3);
	ck_assert_uint_lt(b.modules.targets.table[0].rate_hz, FULL);
	ck_assert_uint_eq(log_capture_end("budget 5 %"), 0);
	log_capture_begin();
	pass(45, 0.3);
	ck_assert_uint_eq(
		log_capture_end("budget 5 %: 40 of 40 processes are sampled at only 11 to 11 Hz "),
		1);
}

static struct instance instances[8];

/* Returns how many of n processes that start now are attached at once. */
static unsigned int admitted(unsigned int n, uint64_t now_ns)
{
	unsigned int of = 0;

	memset(instances, 0, sizeof(instances));
	for (unsigned int i = 0; i < n; i++)
		of += governor_admits(&b.modules.targets, &instances[i], now_ns);
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
	ck_assert_uint_eq(b.modules.governor.admission.delayed, 0);
	ck_assert_uint_eq(admitted(8, now_ns), 1);
	ck_assert_uint_eq(b.modules.governor.admission.delayed, 7);
	/* The same processes, which wait. */
	ck_assert(!governor_admits(&b.modules.targets, &instances[7], now_ns));
	ck_assert_uint_eq(b.modules.governor.admission.delayed, 7);
	ck_assert(governor_admits(&b.modules.targets, &instances[7], now_ns + GOVERNOR_ADMIT_NS));
	ck_assert(!governor_admits(&b.modules.targets, &instances[6], now_ns + GOVERNOR_ADMIT_NS));
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
	b.modules.state.options.config.cpu_budget = 0;
	pass(30, 0.5);
	ck_assert_uint_eq(admitted(8, 1000 * NS_PER_SEC), 8);
}

TEST(the_time_of_an_unwind_process_is_charged_to_its_own_targets)
{
	const double costs[] = {0.002, 0.1, 0.002}, busy[] = {1, 1, 1};

	profile(3);
	b.modules.state.options.config.cpu_budget = 5;
	unwind_for(30, costs, busy);
	ck_assert_uint_eq(target_at(0)->rate_hz, FULL);
	ck_assert_uint_eq(target_at(2)->rate_hz, FULL);
	ck_assert_uint_lt(target_at(1)->rate_hz, FULL / 2);
	ck_assert_uint_ge(target_at(1)->rate_hz, FULL / 4);
	ck_assert_double_eq_tol(target_at(0)->governed.cost.average, 0.002, 1e-5);
	ck_assert_double_eq_tol(target_at(1)->governed.cost.average, 0.1, 1e-5);
}

/* The eight programs of one user do not lower the rate of another user's, nor of a section's. */
TEST(a_user_above_the_part_is_not_sampled)
{
	double costs[9], busy[9];
	struct governor_lowered lowered;

	profile(9);
	b.modules.state.options.config.cpu_budget = 5;
	costs[0] = 0.02;
	busy[0] = 1;
	for (size_t i = 1; i < 9; i++) {
		give_to_user(i, 1000);
		costs[i] = 0.6;
		busy[i] = 0.25;
	}
	log_capture_begin();
	unwind_for(10, costs, busy);
	ck_assert_uint_eq(log_capture_end("CPU budget 5 %: 8 processes that users have attached "
					  "are not sampled"),
			  1);
	ck_assert_uint_eq(target_at(0)->rate_hz, FULL);
	ck_assert_ptr_null(instance_budget_text(&profiled[0]));
	for (size_t i = 1; i < 9; i++) {
		ck_assert_uint_eq(target_at(i)->rate_hz, 0);
		ck_assert_int_eq(target_at(i)->phase, RUN_PROFILED);
		ck_assert_uint_eq(target_at(i)->governed.lowest_hz, FULL);
		ck_assert_ptr_nonnull(instance_budget_text(&profiled[i]));
	}
	governor_count_lowered(&b.modules.targets, &lowered);
	ck_assert_uint_eq(lowered.withheld, 8);
	ck_assert_uint_eq(lowered.lowered, 0);
	ck_assert_uint_eq(lowered.profiled, 9);
}

/* Seven of eight leave: the last one fits. */
TEST(a_target_gets_a_rate_again_when_there_is_room)
{
	double costs[8], busy[8];

	profile(8);
	b.modules.state.options.config.cpu_budget = 5;
	for (size_t i = 0; i < 8; i++) {
		give_to_user(i, 1000 + (uint32_t)i);
		costs[i] = 0.38;
		busy[i] = 0.25;
	}
	unwind_for(20, costs, busy);
	ck_assert_uint_eq(target_at(7)->rate_hz, RATES_MIN_HZ);
	ck_assert_uint_eq(target_at(0)->rate_hz, 0);
	target_at(7)->phase = RUN_CLOSED;
	unwind_for(1, costs, busy);
	ck_assert_uint_eq(target_at(0)->rate_hz + target_at(1)->rate_hz + target_at(2)->rate_hz +
				  target_at(3)->rate_hz + target_at(4)->rate_hz +
				  target_at(5)->rate_hz + target_at(6)->rate_hz,
			  RATES_MIN_HZ);
	/* An operator wants one of the others, too. */
	profiled[0].n_recordings = profiled[0].n_operator_recordings = 1;
	unwind_for(2, costs, busy);
	ck_assert_uint_eq(target_at(0)->rate_hz, RATES_MIN_HZ);
}

/* At the rate 0 the cost is known from the processor time of the process only. */
TEST(a_target_whose_process_becomes_idle_gets_a_rate_again)
{
	const double costs[] = {0.02, 0.6};
	double busy[] = {1, 2};
	uint32_t seconds = 0;

	profile(2);
	give_to_user(1, 1000);
	b.modules.state.options.config.cpu_budget = 5;
	unwind_for(10, costs, busy);
	ck_assert_uint_eq(target_at(1)->rate_hz, 0);
	unwind_for(30, costs, busy);
	ck_assert_uint_eq(target_at(1)->rate_hz, 0);
	busy[1] = 0.1;
	for (; target_at(1)->rate_hz == 0 && seconds < 60; seconds++)
		unwind_for(1, costs, busy);
	ck_assert_uint_ge(seconds, 5);
	ck_assert_uint_le(seconds, 20);
}

/* Nor does a silent unwind process make a process idle. */
TEST(a_target_whose_usage_is_not_read_gets_no_rate)
{
	const double costs[] = {0.02, 0.6}, busy[] = {1, 2};
	const struct governor_used none = {0};

	profile(2);
	give_to_user(1, 1000);
	b.modules.state.options.config.cpu_budget = 5;
	unwind_for(10, costs, busy);
	ck_assert_uint_eq(target_at(1)->rate_hz, 0);
	unwinds[0].child.governed_used_ns = unwinds[1].child.governed_used_ns = 0;
	for (unsigned int i = 0; i < 40; i++)
		governor_add_interval(&b.modules.targets, &none, NS_PER_SEC);
	ck_assert_uint_eq(target_at(1)->rate_hz, 0);
}

TEST(a_target_without_a_rate_is_detached_after_a_minute)
{
	const double costs[] = {0.02, 0.6}, busy[] = {1, 2};

	profile(2);
	give_to_user(1, 1000);
	profiled[1].n_recordings = 1;
	b.modules.state.options.config.cpu_budget = 5;
	for (unsigned int i = 0; target_at(1)->rate_hz > 0 && i < 60; i++)
		unwind_for(1, costs, busy);
	log_capture_begin();
	unwind_for(59, costs, busy);
	ck_assert_int_eq(target_at(1)->phase, RUN_PROFILED);
	ck_assert_int_eq(profiled[1].obstacle, INSTANCE_NO_OBSTACLE);
	unwind_for(1, costs, busy);
	ck_assert_int_ne(target_at(1)->phase, RUN_PROFILED);
	ck_assert_int_eq(profiled[1].obstacle, INSTANCE_OVER_BUDGET);
	ck_assert_uint_eq(profiled[1].run_delay_ns, INSTANCE_BUDGET_WAIT_NS);
	/* Its recordings go on. */
	ck_assert(!instance_is_left_alone(&profiled[1]));
	ck_assert_uint_eq(log_capture_end("is detached: the part of its user (uid 1000) of the "
					  "CPU budget was used up for 60 s"),
			  1);
	ck_assert_uint_eq(target_at(0)->rate_hz, FULL);
}

TEST(without_a_budget_since_a_reload_rates_are_full_again)
{
	const double costs[] = {0.6, 0.6}, busy[] = {1, 2};

	profile(2);
	give_to_user(1, 1000);
	b.modules.state.options.config.cpu_budget = 5;
	unwind_for(10, costs, busy);
	ck_assert_uint_eq(target_at(0)->rate_hz, RATES_MIN_HZ);
	ck_assert_uint_eq(target_at(1)->rate_hz, 0);
	b.modules.state.options.config.cpu_budget = 0;
	unwind_for(1, costs, busy);
	ck_assert_uint_eq(target_at(0)->rate_hz, FULL);
	ck_assert_uint_eq(target_at(1)->rate_hz, FULL);
}

/* What a new run costs counts for its user, also if runs are too short to have a known cost. */
TEST(a_user_above_the_part_gets_no_new_run)
{
	const double costs[] = {0.02, 0.6}, busy[] = {1, 2};
	struct instance mine = {.owner.uid = 1000}, others = {.owner.uid = 1001};
	unsigned int seconds = 0;

	profile(2);
	give_to_user(1, 1000);
	b.modules.state.options.config.cpu_budget = 5;
	ck_assert(governor_admits_user(&b.modules.targets, &mine));
	unwind_for(2, costs, busy);
	ck_assert_uint_eq(target_at(1)->rate_hz, FULL);
	ck_assert(!governor_admits_user(&b.modules.targets, &mine));
	ck_assert(governor_admits_user(&b.modules.targets, &others));
	/* Sections do not wait because of a user. */
	ck_assert_uint_eq(admitted(8, 1000 * NS_PER_SEC), 8);
	target_at(1)->phase = RUN_CLOSED;
	for (; !governor_admits_user(&b.modules.targets, &mine) && seconds < 60; seconds++)
		unwind_for(1, (const double[]){0.02, 0}, busy);
	/* Those that have waited do not start all at a time. */
	ck_assert(!governor_admits_user(&b.modules.targets, &mine));
	unwind_for(1, (const double[]){0.02, 0}, busy);
	ck_assert(governor_admits_user(&b.modules.targets, &mine));
	ck_assert_uint_ge(seconds, 5);
	ck_assert_uint_le(seconds, 20);
	/* Its average use becomes too low to matter. */
	unwind_for(120, (const double[]){0.02, 0}, busy);
	ck_assert_double_lt(b.modules.governor.users.list[0].use, 1e-4);
}

TEST(an_instance_is_for_a_user_as_long_as_no_operator_wants_it)
{
	struct instance i = {.is_sampled = true, .n_recordings = 1};

	/* A user records it. */
	ck_assert(instance_is_for_user(&i));
	i.n_operator_recordings = 1;
	ck_assert(!instance_is_for_user(&i));
	i.n_operator_recordings = 0;
	/* A section or an operator wants it. */
	i.is_started = true;
	ck_assert(!instance_is_for_user(&i));
	i.wish = INSTANCE_WISH_ATTACHED;
	i.asker.is_set = true;
	ck_assert(instance_is_for_user(&i));
}
