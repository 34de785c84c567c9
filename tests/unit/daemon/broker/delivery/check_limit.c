/* Whether something is sampled while a server takes nothing. */
#include "daemon/broker/broker.h"
#include "daemon/broker/delivery/limit.h"

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
	return clock_read_ns(CLOCK_BOOTTIME) + (uint64_t)(seconds * (int64_t)NS_PER_SEC);
}

FIXTURE(set_up, NULL)

TEST(holds_for_its_server)
{
	OK(limit_take(&ships[0], in_s(3600)));
	limit_check(&broker);
	ck_assert(limit_holds(&instances[0]) && !limit_holds(&instances[1]));
	ck_assert_uint_eq(ships[0].limit.pauses, 1);
	/* The server may have thought better of it. */
	OK(limit_take(&ships[0], in_s(0)));
	limit_check(&broker);
	ck_assert(!limit_holds(&instances[0]));
	ck_assert_uint_eq(ships[0].limit.pauses, 1);
}

TEST(files_go_on)
{
	broker.output.dir_fd = 0;
	OK(limit_take(&ships[0], in_s(3600)));
	limit_check(&broker);
	ck_assert(!limit_holds(&instances[0]));
}

static void check_clock(void)
{
	OK(limit_take(&ships[0], in_s(-1)));
	OK(limit_take(&ships[1], in_s(RATELIMIT_MAX_S)));
	limit_check(&broker);
	ck_assert(!limit_holds(&instances[0]) && limit_holds(&instances[1]));
	ck_assert_int_eq(limit_take(&ships[0], in_s(RATELIMIT_MAX_S + 60)), -EPROTO);
}

TEST(a_suspend_counts)
{
	check_clock();
	set_up();
	suspended_run(check_clock);
}
