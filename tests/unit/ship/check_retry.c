/* Waits after failures, and pauses between envelopes of the spool. */
#include "lib/ship/retry.h"

#include <stdlib.h>

#include "tests/unit/random.h"
#include "tests/unit/suite.h"

#define NOW_NS	  (1000 * NS_PER_SEC)
#define MINUTE_NS (60 * NS_PER_SEC)
#define DAY_NS	  (24 * 60 * MINUTE_NS)

/* The longest wait after the n-th failure in a row, in seconds. */
static const uint64_t longest_s[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300};

TEST(waits_double_up_to_the_maximum)
{
	struct retry r = {0};

	ck_assert(!retry_is_waiting(&r, NOW_NS));
	for (size_t n = 0; n < array_size(longest_s); n++) {
		struct retry none = r, longest = r;

		retry_failed(&none, NOW_NS, RETRY_MAX_NS, 0);
		ck_assert(!retry_is_waiting(&none, NOW_NS));
		retry_failed(&longest, NOW_NS, RETRY_MAX_NS, longest_s[n] * NS_PER_SEC);
		ck_assert_uint_eq(longest.until_ns, NOW_NS + longest_s[n] * NS_PER_SEC);
		ck_assert(retry_is_waiting(&longest, longest.until_ns - 1));
		ck_assert(!retry_is_waiting(&longest, longest.until_ns));
		/* A random value one above the longest wait wraps to no wait. */
		retry_failed(&r, NOW_NS, RETRY_MAX_NS, longest_s[n] * NS_PER_SEC + 1);
		ck_assert_uint_eq(r.until_ns, NOW_NS);
	}
	retry_succeeded(&r);
	retry_failed(&r, NOW_NS, RETRY_MAX_NS, NS_PER_SEC);
	ck_assert_uint_eq(r.until_ns, NOW_NS + NS_PER_SEC);
}

TEST(waits_have_no_jitter_for_a_server_of_this_host_alone)
{
	struct retry r = {0};

	for (size_t n = 0; n < array_size(longest_s); n++) {
		const uint64_t wait_s = min_u64(longest_s[n], 30);

		retry_failed_without_jitter(&r, NOW_NS, 30 * NS_PER_SEC);
		ck_assert_uint_eq(r.until_ns, NOW_NS + wait_s * NS_PER_SEC);
		ck_assert_uint_eq(r.failures, n + 1);
	}
	r.failures = UINT32_MAX;
	retry_failed_without_jitter(&r, NOW_NS, 30 * NS_PER_SEC);
	ck_assert_uint_eq(r.until_ns, NOW_NS + 30 * NS_PER_SEC);
	ck_assert_uint_eq(r.failures, UINT32_MAX);
}

/* The count of failures saturates. */
TEST(the_count_does_not_overflow)
{
	struct retry r = {.failures = UINT32_MAX - 1};
	uint64_t random = 1;

	for (int n = 0; n < 1000; n++) {
		retry_failed(&r, NOW_NS, RETRY_MAX_NS, random_next(&random));
		ck_assert_uint_ge(r.until_ns, NOW_NS);
		ck_assert_uint_le(r.until_ns, NOW_NS + RETRY_MAX_NS);
	}
	ck_assert_uint_eq(r.failures, UINT32_MAX);
}

/* Waits are distributed uniformly. */
TEST(waits_are_spread_evenly)
{
	unsigned int tenths[11] = {0};
	uint64_t random = 1;

	for (int n = 0; n < 10000; n++) {
		struct retry r = {.failures = 20};

		retry_failed(&r, 0, RETRY_MAX_NS, random_next(&random));
		tenths[r.until_ns / (RETRY_MAX_NS / 10)]++;
	}
	for (int i = 0; i < 10; i++) {
		ck_assert_uint_gt(tenths[i], 850);
		ck_assert_uint_lt(tenths[i], 1150);
	}
}

/* Returns the time to send n envelopes that were made at this interval. */
static uint64_t drain_ns(size_t n, uint64_t interval_ns, uint64_t *random)
{
	uint64_t sum_ns = 0;

	for (; n > 1; n--)
		sum_ns += retry_pause_ns(n, (n - 1) * interval_ns, random_next(random));
	return sum_ns;
}

TEST(the_spool_drains_four_times_as_fast_as_it_filled)
{
	uint64_t random = 1;

	for (unsigned int n = 10; n <= 1440; n *= 2) {
		const uint64_t usual_ns = n * MINUTE_NS;
		const uint64_t took_ns = drain_ns(n, MINUTE_NS, &random);

		ck_assert_uint_ge(took_ns, usual_ns / 4 * 7 / 10);
		ck_assert_uint_le(took_ns, usual_ns / 4 * 13 / 10);
	}
}

TEST(pauses_are_spread_evenly)
{
	const uint64_t mean_ns = 15 * NS_PER_SEC, span_ns = 59 * MINUTE_NS;
	unsigned int tenths[10] = {0};
	uint64_t random = 2;

	ck_assert_uint_eq(retry_pause_ns(60, span_ns, 0), mean_ns / 2);
	ck_assert_uint_eq(retry_pause_ns(60, span_ns, mean_ns), mean_ns * 3 / 2);
	for (int i = 0; i < 10000; i++) {
		const uint64_t ns = retry_pause_ns(60, span_ns, random_next(&random)) - mean_ns / 2;

		ck_assert_uint_le(ns, mean_ns);
		tenths[min_u64(ns * 10 / mean_ns, 9)]++;
	}
	for (int i = 0; i < 10; i++) {
		ck_assert_uint_gt(tenths[i], 850);
		ck_assert_uint_lt(tenths[i], 1150);
	}
}

/* A hundred targets can make more than ten envelopes a second. */
TEST(pauses_have_a_minimum)
{
	ck_assert_uint_eq(retry_pause_ns(0, 0, 7), RETRY_PAUSE_MIN_NS);
	ck_assert_uint_eq(retry_pause_ns(1, DAY_NS, UINT64_MAX), RETRY_PAUSE_MIN_NS);
	ck_assert_uint_eq(retry_pause_ns(100, 0, 1), RETRY_PAUSE_MIN_NS);
	ck_assert_uint_eq(retry_pause_ns(6000, MINUTE_NS, 99), RETRY_PAUSE_MIN_NS);
	ck_assert_uint_eq(retry_pause_ns(SIZE_MAX, UINT64_MAX, UINT64_MAX), RETRY_PAUSE_MIN_NS);
}

TEST(pauses_have_a_maximum)
{
	uint64_t random = 3;

	/* Two envelopes, a day apart. */
	for (int i = 0; i < 100; i++)
		ck_assert_uint_le(retry_pause_ns(2, DAY_NS, random_next(&random)),
				  RETRY_INTERVAL_MAX_NS / RETRY_DRAIN_TIMES * 3 / 2);
	ck_assert_uint_le(drain_ns(60, MINUTE_NS, &random), 20 * MINUTE_NS);
	/* A full spool. */
	ck_assert_uint_le(drain_ns(16384, 5 * NS_PER_SEC, &random), DAY_NS / 4 * 11 / 10);
}
