#include "daemon/unwind/usage_buffer.h"

#include "tests/unit/suite.h"

static struct usage_buffer usage;
static struct profile_sample samples[2];
static struct profile profile;

static void setup(void)
{
	usage_buffer_init(&usage);
	profile = (struct profile){.samples = samples, .n_samples = 2};
}

static void add(uint64_t time_us)
{
	const struct profile_measurement v = {time_us, time_us, time_us, 0};

	usage_buffer_add(&usage, &v);
}

/* Checks that a chunk of this time gets n values, of which the first has the time first_us. */
static void give(uint64_t from_us, uint64_t to_us, size_t n, uint64_t first_us)
{
	samples[0].time_us = from_us;
	samples[1].time_us = to_us;
	usage_buffer_give(&usage, &profile);
	ck_assert_uint_eq(profile.n_measurements, n);
	if (n > 0)
		ck_assert_uint_eq(profile.measurements[0].time_us, first_us);
}

FIXTURE(setup, NULL)

TEST(a_chunk_gets_the_values_of_its_time)
{
	give(0, 5, 0, 0);
	for (uint64_t t = 1; t <= 9; t++)
		add(t);
	give(3, 5, 3, 3); /* both ends; 1 and 2 are dropped */
	give(5, 7, 2, 6); /* each value once */
	add(9);		  /* not later than the last */
	add(10);
	give(7, 20, 3, 8);
	give(20, 30, 0, 0);
	add(40);
	give(50, 60, 0, 0);
}

TEST(a_full_buffer_drops_new_values)
{
	for (uint64_t t = 1; t <= 2 * USAGE_BUFFER_MAX; t++)
		add(t);
	give(1, 1000, USAGE_BUFFER_MAX, 1);
	add(2000);
	give(1000, 3000, 1, 2000);
}

/* A value for which there was no chunk goes into the next one. */
TEST(a_profile_without_samples_gets_no_values)
{
	add(5);
	profile.n_samples = 0;
	usage_buffer_give(&usage, &profile);
	ck_assert_uint_eq(profile.n_measurements, 0);
	profile.n_samples = 2;
	give(0, 10, 1, 5);
}
