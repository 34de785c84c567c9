#include "lib/capture/counters.h"

#include <string.h>

#include "tests/unit/suite.h"

static struct capture_counters counters;

static void set_up(void)
{
	memset(&counters, 0, sizeof(counters));
}

FIXTURE(set_up, NULL)

TEST(without_pauses_every_percentile_is_0)
{
	ck_assert_uint_eq(counters_pause_percentile(&counters, 0.5), 0);
	ck_assert_uint_eq(counters_pause_percentile(&counters, 1.0), 0);
}

/* The result is the upper bound of the bucket: not below the pause, and less than 1/8 above it. */
TEST(a_bucket_is_an_eighth_of_an_octave)
{
	const uint64_t pauses[] = {256,	  257,	 287,	 288,	  1000,	     8191,
				   12600, 65536, 999999, 4000000, 123456789, 200000000};

	for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
		uint64_t got;

		memset(&counters, 0, sizeof(counters));
		counters_pause(&counters, pauses[i]);
		/* A second, longer pause, so that the maximum does not limit the result. */
		counters_pause(&counters, UINT64_C(1) << 40);
		got = counters_pause_percentile(&counters, 0.5);
		ck_assert_uint_ge(got, pauses[i]);
		ck_assert_uint_le(got, pauses[i] + pauses[i] / 8 + 1);
	}
}

TEST(percentiles_of_1000_pauses_are_exact_to_9_percent)
{
	/* Pauses of 1 us to 1 ms in steps of 1 us. */
	for (uint64_t i = 1; i <= 1000; i++)
		counters_pause(&counters, i * 1000);
	ck_assert_uint_eq(counters.pause_max_ns, 1000000);
	ck_assert_uint_ge(counters_pause_percentile(&counters, 0.5), 500000);
	ck_assert_uint_le(counters_pause_percentile(&counters, 0.5), 562500);
	ck_assert_uint_ge(counters_pause_percentile(&counters, 0.99), 990000);
	/* The result is not above the longest pause, although the bucket's bound is. */
	ck_assert_uint_eq(counters_pause_percentile(&counters, 0.99), 1000000);
	ck_assert_uint_eq(counters_pause_percentile(&counters, 1.0), 1000000);
}

TEST(the_shortest_and_the_longest_have_a_bucket)
{
	counters_pause(&counters, 0);
	counters_pause(&counters, 255);
	ck_assert_uint_eq(counters.pauses[0], 2);
	counters_pause(&counters, UINT64_MAX);
	ck_assert_uint_eq(counters.pauses[PAUSE_BUCKETS - 1], 1);
	ck_assert_uint_eq(counters.pause_max_ns, UINT64_MAX);
}

/* Checks every counter. The struct consists of uint64_t only. */
TEST(counters_add_adds_every_counter)
{
	enum { WORDS = sizeof(struct capture_counters) / sizeof(uint64_t) };
	struct capture_counters one, two, before;
	uint64_t a[WORDS], b[WORDS], sum[WORDS];

	_Static_assert(sizeof(a) == sizeof(one), "nothing but uint64_t");
	for (size_t i = 0; i < WORDS; i++) {
		a[i] = 1000 + i;
		b[i] = 1000000 * (i + 1);
	}
	memcpy(&one, a, sizeof(one));
	memcpy(&two, b, sizeof(two));
	before = one;
	counters_add(&one, &two);
	ck_assert_uint_eq(one.pause_max_ns, two.pause_max_ns);
	/* The present state is no count. */
	ck_assert_uint_eq(one.threads, before.threads);
	ck_assert_uint_eq(one.refused, before.refused);
	ck_assert_uint_eq(one.refused_error, before.refused_error);
	one.pause_max_ns = 0;
	one.threads = 0;
	one.refused = 0;
	one.refused_error = 0;
	memcpy(sum, &one, sizeof(one));
	for (size_t i = 0; i < WORDS; i++)
		if (sum[i] != 0)
			ck_assert_uint_eq(sum[i], a[i] + b[i]);
}

TEST(counters_add_keeps_the_longest_pause)
{
	struct capture_counters more = {.pause_max_ns = 5};

	counters.pause_max_ns = 9;
	counters_add(&counters, &more);
	ck_assert_uint_eq(counters.pause_max_ns, 9);
}

TEST(every_reason_has_a_name)
{
	for (int i = 0; i < MISSED_N; i++)
		for (int j = 0; j <= MISSED_N; j++)
			if (i != j)
				ck_assert_str_ne(missed_reason_name((enum missed_reason)i),
						 missed_reason_name((enum missed_reason)j));
}
