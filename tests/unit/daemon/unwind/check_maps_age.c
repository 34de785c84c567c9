#include "daemon/unwind/maps_age.h"

#include "tests/unit/suite.h"

static struct maps_age age;

static void set_up(void)
{
	maps_age_begin(&age, 7);
}

/* As many samples, one just before that time; then one at it. */
static bool is_old(uint64_t samples, uint64_t ns)
{
	for (uint64_t i = 1; i < samples; i++)
		ck_assert(!maps_age_sample(&age, 7 + ns - 1));
	return maps_age_sample(&age, 7 + ns);
}

FIXTURE(set_up, NULL)

TEST(of_one_that_is_busy)
{
	ck_assert(is_old(MAPS_SAMPLES, MAPS_EVERY_NS));
	/* Until they are read. */
	ck_assert(maps_age_sample(&age, 7 + MAPS_EVERY_NS));
	set_up();
	ck_assert(!maps_age_sample(&age, 7 + MAPS_EVERY_NS));
}

TEST(of_one_that_sleeps_mostly)
{
	ck_assert(!is_old(MAPS_SAMPLES - 1, MAPS_EVERY_NS));
	ck_assert(maps_age_sample(&age, 7 + MAPS_EVERY_NS));
	set_up();
	ck_assert(!maps_age_sample(&age, 7 + MAPS_SELDOM_NS - 1));
	ck_assert(maps_age_sample(&age, 7 + MAPS_SELDOM_NS));
}

TEST(where_a_pc_is_in_none)
{
	ck_assert(!maps_age_unknown(&age, 7 + MAPS_UNKNOWN_NS - 1));
	ck_assert(maps_age_unknown(&age, 7 + MAPS_UNKNOWN_NS));
}
