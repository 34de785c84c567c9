#include "lib/base/util.h"

#include "tests/unit/suite.h"

TEST(a_backoff_doubles_up_to_the_longest)
{
	static const uint64_t waits[] = {0, 3, 6, 12, 24, 48, 50, 50};

	for (size_t n = 0; n < array_size(waits); n++)
		ck_assert_uint_eq(backoff_ns(n, 3, 50), waits[n]);
}

TEST(a_backoff_never_overflows)
{
	const uint64_t first = (UINT64_C(1) << 48) - 1;

	ck_assert_uint_eq(backoff_ns(17, first, UINT64_MAX), first << 16);
	ck_assert_uint_eq(backoff_ns(18, first, UINT64_MAX), first << 16);
	ck_assert_uint_eq(backoff_ns(UINT64_MAX, first, UINT64_MAX), first << 16);
	ck_assert_uint_eq(backoff_ns(UINT64_MAX, 1, 50), 50);
}

TEST(the_first_backoff_is_not_longer_than_the_longest)
{
	ck_assert_uint_eq(backoff_ns(1, 3, 2), 2);
}
