/* When the run of a process that is profiled is ended, and another begins. */
#include "daemon/instance.h"

#include <string.h>

#include "daemon/broker.h"
#include "tests/unit/suite.h"

static struct broker b;
static struct instance instance;
static struct instance *list[] = {&instance};
static uint64_t mono_ns, slept_ns, wall_ns;

static uint64_t mono(void)
{
	return mono_ns;
}

static uint64_t boot(void)
{
	return mono_ns + slept_ns;
}

static uint64_t wall(void)
{
	return wall_ns;
}

/* One that is profiled, and is to be. */
static void set_up(void)
{
	memset(&b, 0, sizeof(b));
	b.clocks = (struct broker_clocks){mono, boot, wall};
	b.capture.fd = -1;
	b.instances = list;
	b.n_instances = 1;
	mono_ns = slept_ns = 1000 * NS_PER_SEC;
	wall_ns = UINT64_C(1763755000) * NS_PER_SEC;
	instance = (struct instance){
		.broker = &b,
		.pid = 1,
		.pidfd = -1,
		.is_sampled = true,
		.is_started = true,
	};
	ck_assert_int_eq(target_open(&b, &instance), 0);
	instance.target->phase = TARGET_PROFILED;
	instance.target->in_capture = true;
}

static bool goes_on(void)
{
	instances_check(&b);
	return instance.target->phase == TARGET_PROFILED;
}

START_TEST(it_ends_when_it_is_not_wanted_any_more)
{
	ck_assert(goes_on());
	instance.is_started = false;
	ck_assert(!goes_on());
}
END_TEST

START_TEST(it_ends_when_the_machine_has_slept)
{
	ck_assert(goes_on());
	slept_ns += 3600 * NS_PER_SEC;
	ck_assert(!goes_on());
}
END_TEST

START_TEST(it_ends_when_the_clock_was_set)
{
	mono_ns += 3600 * NS_PER_SEC;
	wall_ns += 3600 * NS_PER_SEC;
	ck_assert(goes_on());
	wall_ns += 3600 * NS_PER_SEC;
	ck_assert(!goes_on());
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("instance");
	TCase *tc = tcase_create("its run");

	tcase_add_checked_fixture(tc, set_up, NULL);
	tcase_add_test(tc, it_ends_when_it_is_not_wanted_any_more);
	tcase_add_test(tc, it_ends_when_the_machine_has_slept);
	tcase_add_test(tc, it_ends_when_the_clock_was_set);
	suite_add_tcase(s, tc);
	return s;
}
