#include "daemon/unwind/measures.h"

#include "daemon/broker/targets/target_usage.h"
#include "tests/unit/suite.h"

static struct measures measures;
static struct profile_sample samples[2];
static struct profile profile;

static void setup(void)
{
	measures_init(&measures);
	profile = (struct profile){.samples = samples, .n_samples = 2};
}

static void add(uint64_t time_us)
{
	const struct profile_measure v = {time_us, time_us, time_us, 0};

	measures_add(&measures, &v);
}

/* A chunk of that time gets n, the first of first_us. */
static void give(uint64_t from_us, uint64_t to_us, size_t n, uint64_t first_us)
{
	samples[0].time_us = from_us;
	samples[1].time_us = to_us;
	measures_give(&measures, &profile);
	ck_assert_uint_eq(profile.n_measures, n);
	if (n > 0)
		ck_assert_uint_eq(profile.measures[0].time_us, first_us);
}

FIXTURE(setup, NULL)

TEST(by_time)
{
	give(0, 5, 0, 0);
	for (uint64_t t = 1; t <= 9; t++)
		add(t);
	give(3, 5, 3, 3); /* both ends; 1 and 2 are nobody's */
	give(5, 7, 2, 6); /* each once */
	add(9);		  /* not later */
	add(10);
	give(7, 20, 3, 8);
	give(20, 30, 0, 0);
	add(40);
	give(50, 60, 0, 0);
}

TEST(no_more_than_there_is_room)
{
	for (uint64_t t = 1; t <= 2 * MEASURES_MAX; t++)
		add(t);
	give(1, 1000, MEASURES_MAX, 1);
	add(2000);
	give(1000, 3000, 1, 2000);
}

/* What a chunk got is as it was until the next comes. */
TEST(nothing_without_samples)
{
	add(5);
	profile.n_samples = 0;
	measures_give(&measures, &profile);
	ck_assert_uint_eq(profile.n_measures, 0);
	profile.n_samples = 2;
	give(0, 10, 1, 5);
}

TEST(percent)
{
	static const struct {
		struct target_usage from, to;
		uint64_t millionths;
	} v[] = {
		{{1, 0}, {1000000001, 1000000000}, 100000000},
		{{1, 0}, {1000000001, 5000000}, 500000},
		{{1000, 7}, {3000, 5007}, 250000000},
		{{1, 7}, {2, 7}, 0},
		{{1, 7}, {2, 6}, 0},
		{{2, 7}, {2, 8}, 0},
		{{3, 7}, {2, 8}, 0},
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		ck_assert_uint_eq(target_usage_percent(&v[i].from, &v[i].to), v[i].millionths);
}
