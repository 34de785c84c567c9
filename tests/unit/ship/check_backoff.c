#include "lib/ship/backoff.h"

#include "tests/unit/random.h"
#include "tests/unit/suite.h"

#define NOW_NS (1000 * NS_PER_SEC)

/* How long the n-th wait in a row may be, in seconds. */
static const uint64_t longest_s[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300};

TEST(longer_and_longer)
{
	struct backoff b = {0};

	ck_assert(!backoff_holds(&b, NOW_NS));
	for (size_t n = 0; n < array_size(longest_s); n++) {
		struct backoff never = b, longest = b;

		backoff_failed(&never, NOW_NS, 0);
		ck_assert(!backoff_holds(&never, NOW_NS));
		backoff_failed(&longest, NOW_NS, longest_s[n] * NS_PER_SEC);
		ck_assert_uint_eq(longest.until_ns, NOW_NS + longest_s[n] * NS_PER_SEC);
		ck_assert(backoff_holds(&longest, longest.until_ns - 1));
		ck_assert(!backoff_holds(&longest, longest.until_ns));
		/* One more begins anew. */
		backoff_failed(&b, NOW_NS, longest_s[n] * NS_PER_SEC + 1);
		ck_assert_uint_eq(b.until_ns, NOW_NS);
	}
	backoff_succeeded(&b);
	backoff_failed(&b, NOW_NS, NS_PER_SEC);
	ck_assert_uint_eq(b.until_ns, NOW_NS + NS_PER_SEC);
}

TEST(without_chance_where_nobody_else_waits)
{
	struct backoff b = {0};

	for (size_t n = 0; n < array_size(longest_s); n++) {
		const uint64_t wait_s = min_u64(longest_s[n], 30);

		backoff_failed_alone(&b, NOW_NS, 30 * NS_PER_SEC);
		ck_assert_uint_eq(b.until_ns, NOW_NS + wait_s * NS_PER_SEC);
		ck_assert_uint_eq(b.failures, n + 1);
	}
	b.failures = UINT32_MAX;
	backoff_failed_alone(&b, NOW_NS, 30 * NS_PER_SEC);
	ck_assert_uint_eq(b.until_ns, NOW_NS + 30 * NS_PER_SEC);
	ck_assert_uint_eq(b.failures, UINT32_MAX);
}

/* For weeks: it does not come to an end. */
TEST(never_overflows)
{
	struct backoff b = {.failures = UINT32_MAX - 1};
	uint64_t random = 1;

	for (int n = 0; n < 1000; n++) {
		backoff_failed(&b, NOW_NS, random_next(&random));
		ck_assert_uint_ge(b.until_ns, NOW_NS);
		ck_assert_uint_le(b.until_ns, NOW_NS + BACKOFF_MAX_NS);
	}
	ck_assert_uint_eq(b.failures, UINT32_MAX);
}

/* All parts of the time are met alike. */
TEST(spread_evenly)
{
	unsigned int tenths[11] = {0};
	uint64_t random = 1;

	for (int n = 0; n < 10000; n++) {
		struct backoff b = {.failures = 20};

		backoff_failed(&b, 0, random_next(&random));
		tenths[b.until_ns / (BACKOFF_MAX_NS / 10)]++;
	}
	for (int i = 0; i < 10; i++) {
		ck_assert_uint_gt(tenths[i], 850);
		ck_assert_uint_lt(tenths[i], 1150);
	}
}
