#include "daemon/broker/children/watch.h"

#include "tests/unit/suite.h"

#define START (5 * NS_PER_SEC)
#define STEP  (NS_PER_SEC / 10)

static struct idle_timeout p;

static void set_up(void)
{
	idle_timeout_start(&p, START);
}

FIXTURE(set_up, NULL)

TEST(without_progress_it_ends_after_the_idle_time)
{
	for (uint64_t now = START; now < START + NS_PER_SEC; now += STEP)
		ck_assert_uint_eq(idle_timeout_end_ns(&p, now, false), START + IDLE_TIMEOUT_NS);
}

TEST(progress_moves_the_end)
{
	uint64_t last = START + 7 * STEP;

	ck_assert_uint_eq(idle_timeout_end_ns(&p, last, true), last + IDLE_TIMEOUT_NS);
	ck_assert_uint_eq(idle_timeout_end_ns(&p, last + STEP, false), last + IDLE_TIMEOUT_NS);
}

TEST(it_ends_after_the_busy_time_at_the_latest)
{
	uint64_t now = START, end;

	while (now < (end = idle_timeout_end_ns(&p, now, true)))
		now += STEP;
	ck_assert_uint_eq(end, START + IDLE_TIMEOUT_MAX_NS);
	ck_assert_uint_lt(now, end + STEP);
}
