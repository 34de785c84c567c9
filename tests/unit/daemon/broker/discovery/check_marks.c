#include "daemon/broker/discovery/marks.h"

#include "tests/unit/suite.h"

static struct marks m;

static void setup(void)
{
	marks_init(&m);
}

static void teardown(void)
{
	marks_fini(&m);
}

FIXTURE(setup, teardown)

TEST(what_has_changed)
{
	ck_assert_int_eq(marks_compare(&m, 1, 7, 0), MARK_NEW);
	ck_assert_int_eq(marks_compare(&m, 2, 7, 0), MARK_NEW);
	ck_assert_int_eq(marks_compare(&m, 3, 7, 0), MARK_NEW);
	marks_turn(&m);
	ck_assert_int_eq(marks_compare(&m, 1, 7, 0), MARK_SAME);
	ck_assert_int_eq(marks_compare(&m, 2, 8, 33), MARK_PROGRAM);
	ck_assert_int_eq(marks_compare(&m, 3, 7, 33), MARK_USER);
	marks_turn(&m);
	ck_assert_int_eq(marks_compare(&m, 1, 7, 0), MARK_SAME);
	ck_assert_int_eq(marks_compare(&m, 2, 8, 33), MARK_SAME);
	ck_assert_int_eq(marks_compare(&m, 3, 7, 0), MARK_USER);
}

TEST(who_is_gone_is_forgotten)
{
	ck_assert_int_eq(marks_compare(&m, 1, 7, 0), MARK_NEW);
	marks_turn(&m);
	marks_turn(&m);
	ck_assert_int_eq(marks_compare(&m, 1, 7, 0), MARK_NEW);
	marks_turn(&m);
	marks_forget(&m);
	ck_assert_int_eq(marks_compare(&m, 1, 7, 0), MARK_NEW);
}

/* A reload may begin or end it: nobody has changed because of that. */
TEST(users_that_nobody_asks_for)
{
	ck_assert_int_eq(marks_compare(&m, 1, 7, MARKS_NO_USER), MARK_NEW);
	marks_turn(&m);
	ck_assert_int_eq(marks_compare(&m, 1, 7, 33), MARK_SAME);
	marks_turn(&m);
	ck_assert_int_eq(marks_compare(&m, 1, 7, MARKS_NO_USER), MARK_SAME);
	marks_turn(&m);
	ck_assert_int_eq(marks_compare(&m, 1, 7, 0), MARK_SAME);
}
