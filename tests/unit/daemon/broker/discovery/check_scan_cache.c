#include "daemon/broker/discovery/scan_cache.h"

#include "tests/unit/suite.h"

static struct scan_cache m;

static void setup(void)
{
	scan_cache_init(&m);
}

static void teardown(void)
{
	scan_cache_fini(&m);
}

FIXTURE(setup, teardown)

TEST(changes_since_the_last_scan_are_reported)
{
	ck_assert_int_eq(scan_cache_compare(&m, 1, 7, 0), SCAN_CACHE_NEW);
	ck_assert_int_eq(scan_cache_compare(&m, 2, 7, 0), SCAN_CACHE_NEW);
	ck_assert_int_eq(scan_cache_compare(&m, 3, 7, 0), SCAN_CACHE_NEW);
	scan_cache_end_scan(&m);
	ck_assert_int_eq(scan_cache_compare(&m, 1, 7, 0), SCAN_CACHE_SAME);
	ck_assert_int_eq(scan_cache_compare(&m, 2, 8, 33), SCAN_CACHE_PROGRAM);
	ck_assert_int_eq(scan_cache_compare(&m, 3, 7, 33), SCAN_CACHE_USER);
	scan_cache_end_scan(&m);
	ck_assert_int_eq(scan_cache_compare(&m, 1, 7, 0), SCAN_CACHE_SAME);
	ck_assert_int_eq(scan_cache_compare(&m, 2, 8, 33), SCAN_CACHE_SAME);
	ck_assert_int_eq(scan_cache_compare(&m, 3, 7, 0), SCAN_CACHE_USER);
}

TEST(an_ended_process_is_forgotten)
{
	ck_assert_int_eq(scan_cache_compare(&m, 1, 7, 0), SCAN_CACHE_NEW);
	scan_cache_end_scan(&m);
	scan_cache_end_scan(&m);
	ck_assert_int_eq(scan_cache_compare(&m, 1, 7, 0), SCAN_CACHE_NEW);
	scan_cache_end_scan(&m);
	scan_cache_forget(&m);
	ck_assert_int_eq(scan_cache_compare(&m, 1, 7, 0), SCAN_CACHE_NEW);
}

/* A reload may begin or end the comparison of users; that is no change of user. */
TEST(users_are_compared_only_if_they_are_read)
{
	ck_assert_int_eq(scan_cache_compare(&m, 1, 7, SCAN_CACHE_NO_USER), SCAN_CACHE_NEW);
	scan_cache_end_scan(&m);
	ck_assert_int_eq(scan_cache_compare(&m, 1, 7, 33), SCAN_CACHE_SAME);
	scan_cache_end_scan(&m);
	ck_assert_int_eq(scan_cache_compare(&m, 1, 7, SCAN_CACHE_NO_USER), SCAN_CACHE_SAME);
	scan_cache_end_scan(&m);
	ck_assert_int_eq(scan_cache_compare(&m, 1, 7, 0), SCAN_CACHE_SAME);
}
