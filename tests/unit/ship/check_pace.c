#include "lib/ship/pace.h"

#include <stdlib.h>

#include "tests/unit/random.h"
#include "tests/unit/suite.h"

#define MINUTE_NS (60 * NS_PER_SEC)
#define DAY_NS	  (24 * 60 * MINUTE_NS)

/* Until n that were made one every each_ns are gone. */
static uint64_t drain_ns(size_t n, uint64_t each_ns, uint64_t *random)
{
	uint64_t sum_ns = 0;

	for (; n > 1; n--)
		sum_ns += pace_pause_ns(n, (n - 1) * each_ns, random_next(random));
	return sum_ns;
}

TEST(four_times_as_often)
{
	uint64_t random = 1;

	for (unsigned int n = 10; n <= 1440; n *= 2) {
		const uint64_t usual_ns = n * MINUTE_NS;
		const uint64_t took_ns = drain_ns(n, MINUTE_NS, &random);

		ck_assert_uint_ge(took_ns, usual_ns / 4 * 7 / 10);
		ck_assert_uint_le(took_ns, usual_ns / 4 * 13 / 10);
	}
}

TEST(by_chance)
{
	const uint64_t mean_ns = 15 * NS_PER_SEC, span_ns = 59 * MINUTE_NS;
	unsigned int tenths[10] = {0};
	uint64_t random = 2;

	ck_assert_uint_eq(pace_pause_ns(60, span_ns, 0), mean_ns / 2);
	ck_assert_uint_eq(pace_pause_ns(60, span_ns, mean_ns), mean_ns * 3 / 2);
	for (int i = 0; i < 10000; i++) {
		const uint64_t ns = pace_pause_ns(60, span_ns, random_next(&random)) - mean_ns / 2;

		ck_assert_uint_le(ns, mean_ns);
		tenths[min_u64(ns * 10 / mean_ns, 9)]++;
	}
	for (int i = 0; i < 10; i++) {
		ck_assert_uint_gt(tenths[i], 850);
		ck_assert_uint_lt(tenths[i], 1150);
	}
}

/* As SDKs; a hundred targets make more than ten a second. */
TEST(never_shorter_than_it_may)
{
	ck_assert_uint_eq(pace_pause_ns(0, 0, 7), PACE_LEAST_NS);
	ck_assert_uint_eq(pace_pause_ns(1, DAY_NS, UINT64_MAX), PACE_LEAST_NS);
	ck_assert_uint_eq(pace_pause_ns(100, 0, 1), PACE_LEAST_NS);
	ck_assert_uint_eq(pace_pause_ns(6000, MINUTE_NS, 99), PACE_LEAST_NS);
	ck_assert_uint_eq(pace_pause_ns(SIZE_MAX, UINT64_MAX, UINT64_MAX), PACE_LEAST_NS);
}

TEST(no_longer_than_is_reasonable)
{
	uint64_t random = 3;

	/* Two, a day apart. */
	for (int i = 0; i < 100; i++)
		ck_assert_uint_le(pace_pause_ns(2, DAY_NS, random_next(&random)),
				  PACE_EACH_MAX_NS / PACE_TIMES * 3 / 2);
	ck_assert_uint_le(drain_ns(60, MINUTE_NS, &random), 20 * MINUTE_NS);
	/* As many as the spool takes. */
	ck_assert_uint_le(drain_ns(16384, 5 * NS_PER_SEC, &random), DAY_NS / 4 * 11 / 10);
}
