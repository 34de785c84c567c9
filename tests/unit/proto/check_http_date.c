#include "proto/http_date.h"

#include "tests/unit/suite.h"

/* The example of RFC 9110, 5.6.7, in its three forms; check_ratelimit.c has
 * more. */
START_TEST(three_forms)
{
	static const char *const texts[] = {
		"Sun, 06 Nov 1994 08:49:37 GMT",
		"Sunday, 06-Nov-94 08:49:37 GMT",
		"Sun Nov  6 08:49:37 1994",
	};
	int64_t date = 0;

	ck_assert(http_date_parse(texts[_i], 784111777, &date));
	ck_assert_int_eq(date, 784111777);
}
END_TEST

START_TEST(no_dates)
{
	int64_t date = 1;

	ck_assert(!http_date_parse("", 0, &date));
	ck_assert(!http_date_parse("tomorrow", 0, &date));
	ck_assert(!http_date_parse("Sun, 06 Nov 1994 08:49:37 GMT.", 0, &date));
	ck_assert(!http_date_parse("Sun, 06 Nov 1994 08:49:61 GMT", 0, &date));
	ck_assert_int_eq(date, 1);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("http_date");
	TCase *c = tcase_create("http_date");

	tcase_add_loop_test(c, three_forms, 0, 3);
	tcase_add_test(c, no_dates);
	suite_add_tcase(s, c);
	return s;
}
