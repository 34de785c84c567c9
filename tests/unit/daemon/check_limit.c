/* Whether something is sampled while a server takes nothing. */
#include "daemon/limit.h"

#include <string.h>

#include "lib/base/clock.h"
#include "proto/ratelimit.h"
#include "tests/unit/daemon/suspended.h"
#include "tests/unit/suite.h"

static struct broker broker;
static struct ship ships[2];
static struct instance instances[2];

static void set_up(void)
{
	memset(&broker, 0, sizeof(broker));
	memset(instances, 0, sizeof(instances));
	broker.clocks = (struct broker_clocks){
		.mono = clock_mono_ns,
		.boot = clock_boot_ns,
		.wall = clock_wall_ns,
	};
	broker.output.dir_fd = -1;
	broker.n_ships = 2;
	for (size_t i = 0; i < 2; i++) {
		ships[i] = (struct ship){.dsn = "http://key@localhost/1"};
		ships[i].child.broker = &broker;
		broker.ships[i] = &ships[i];
		instances[i].ship = &ships[i];
	}
}

/* By the clock that goes on while the machine sleeps. */
static uint64_t in_s(int64_t seconds)
{
	return clock_read_ns(CLOCK_BOOTTIME) +
	       (uint64_t)(seconds * (int64_t)NS_PER_SEC);
}

START_TEST(holds_for_its_server)
{
	ck_assert_int_eq(limit_take(&ships[0], in_s(3600)), 0);
	limit_check(&broker);
	ck_assert(limit_holds(&instances[0]) && !limit_holds(&instances[1]));
	ck_assert_uint_eq(ships[0].limit.pauses, 1);
	/* The server may have thought better of it. */
	ck_assert_int_eq(limit_take(&ships[0], in_s(0)), 0);
	limit_check(&broker);
	ck_assert(!limit_holds(&instances[0]));
	ck_assert_uint_eq(ships[0].limit.pauses, 1);
}
END_TEST

START_TEST(files_go_on)
{
	broker.output.dir_fd = 0;
	ck_assert_int_eq(limit_take(&ships[0], in_s(3600)), 0);
	limit_check(&broker);
	ck_assert(!limit_holds(&instances[0]));
}
END_TEST

static void check_clock(void)
{
	ck_assert_int_eq(limit_take(&ships[0], in_s(-1)), 0);
	ck_assert_int_eq(limit_take(&ships[1], in_s(RATELIMIT_MAX_S)), 0);
	limit_check(&broker);
	ck_assert(!limit_holds(&instances[0]) && limit_holds(&instances[1]));
	ck_assert_int_eq(limit_take(&ships[0], in_s(RATELIMIT_MAX_S + 60)),
			 -EPROTO);
}

START_TEST(a_suspend_counts)
{
	check_clock();
	set_up();
	suspended_run(check_clock);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("limit");
	TCase *c = tcase_create("limit");

	tcase_add_checked_fixture(c, set_up, NULL);
	tcase_add_test(c, holds_for_its_server);
	tcase_add_test(c, files_go_on);
	tcase_add_test(c, a_suspend_counts);
	suite_add_tcase(s, c);
	return s;
}
