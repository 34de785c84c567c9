/* The profiler id and the clocks of a run. */
#include "daemon/broker/targets/targets.h"

#include <string.h>

#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/suite.h"

#define HOUR_NS (3600 * NS_PER_SEC)

static struct broker b;
static struct instance instance;
static uint64_t mono_ns, slept_ns, wall_ns;
static uint64_t passes_ns; /* time that passes between two readings */

static void pass(uint64_t ns)
{
	mono_ns += ns;
	wall_ns += ns;
}

static uint64_t mono(void)
{
	pass(passes_ns);
	return mono_ns;
}

static uint64_t boot(void)
{
	pass(passes_ns);
	return mono_ns + slept_ns;
}

static uint64_t wall(void)
{
	pass(passes_ns);
	return wall_ns;
}

static void set_up(void)
{
	build_broker(&b);
	b.modules.state.clocks = (struct state_clocks){mono, boot, wall};
	instance = (struct instance){.targets = &b.modules.targets, .pid = 1, .pidfd = -1};
	mono_ns = 1000 * NS_PER_SEC;
	slept_ns = HOUR_NS;
	wall_ns = UINT64_C(1763755000) * NS_PER_SEC;
	passes_ns = 0;
}

static struct run *open_one(void)
{
	OK(targets_open_run(&b.modules.targets, &instance, 0, false));
	return instance.run;
}

/* Returns the time of a tick as in a chunk, in Unix time. */
static uint64_t unix_s(const struct run *run)
{
	return (run->profile.wall_offset_us + mono_ns / NS_PER_US) / (NS_PER_SEC / NS_PER_US);
}

static void sleep_for(uint64_t ns)
{
	slept_ns += ns;
	wall_ns += ns;
}

FIXTURE(set_up, NULL)

TEST(a_new_run_has_the_present_time)
{
	char first[MSG_ID_SIZE];
	struct run *run = open_one();

	ck_assert_uint_eq(unix_s(run), wall_ns / NS_PER_SEC);
	memcpy(first, run->profile.profiler_id, sizeof(first));
	sleep_for(8 * HOUR_NS);
	run = open_one();
	ck_assert_str_ne(run->profile.profiler_id, first);
	ck_assert_uint_eq(unix_s(run), wall_ns / NS_PER_SEC);
	/* A run keeps its offset when the clock is set. */
	wall_ns += HOUR_NS;
	pass(NS_PER_SEC);
	ck_assert_uint_eq(unix_s(run), wall_ns / NS_PER_SEC - 3600);
}

TEST(the_times_disagree_after_a_sleep)
{
	struct run *run = open_one();

	ck_assert(run_clocks_agree(&b.modules.state, run));
	pass(HOUR_NS);
	ck_assert(run_clocks_agree(&b.modules.state, run));
	/* As if the sleep had not changed the clock. */
	slept_ns += 2 * NS_PER_SEC;
	ck_assert(!run_clocks_agree(&b.modules.state, run));
	ck_assert(run_clocks_agree(&b.modules.state, open_one()));
}

/*
 * A broker without a processor between two readings must not take that for a sleep or a set
 * clock.
 */
TEST(the_times_agree_on_a_busy_machine)
{
	struct run *run;

	passes_ns = 10 * NS_PER_SEC;
	run = open_one();
	passes_ns = 0;
	ck_assert(run_clocks_agree(&b.modules.state, run));
	run = open_one();
	passes_ns = 60 * NS_PER_SEC;
	ck_assert(run_clocks_agree(&b.modules.state, run));
}

TEST(the_times_disagree_after_the_clock_was_set)
{
	static const int64_t by_s[] = {2, -2, 3, -3, 3 * 3600, -3 * 3600};

	for (size_t i = 0; i < array_size(by_s); i++) {
		struct run *run = open_one();
		const bool holds = by_s[i] >= -2 && by_s[i] <= 2;

		pass(59 * NS_PER_SEC);
		wall_ns += (uint64_t)by_s[i] * NS_PER_SEC;
		ck_assert(run_clocks_agree(&b.modules.state, run));
		pass(NS_PER_SEC);
		ck_assert_int_eq(run_clocks_agree(&b.modules.state, run), holds);
		run = open_one();
		pass(HOUR_NS);
		ck_assert(run_clocks_agree(&b.modules.state, run));
	}
}

TEST(files_that_hang_are_suspended_ever_longer)
{
	static const uint64_t minutes[] = {1, 2, 4, 8, 16, 32, 60, 60};
	struct run *run = open_one();
	uint64_t now = mono_ns;

	ck_assert(!run_files_suspended(run, now));
	for (size_t i = 0; i < array_size(minutes); i++) {
		const uint64_t pause = minutes[i] * 60 * NS_PER_SEC;

		ck_assert_uint_eq(run_suspend_files(run, now), pause);
		ck_assert(run_files_suspended(run, now + pause - 1));
		now += pause;
		ck_assert(!run_files_suspended(run, now));
	}
	ck_assert(!run_files_suspended(open_one(), mono_ns));
}
