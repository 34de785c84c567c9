#include "lib/base/file_name.h"

#include "lib/base/util.h"
#include "tests/unit/suite.h"

START_TEST(one_component_of_printable_ascii_is_plain)
{
	ck_assert(file_name_is_plain("libx.so.1.debug", 16));
	ck_assert(file_name_is_plain("0123.debug\0\1\2", 13));
	ck_assert(file_name_is_plain("~", 2));
}
END_TEST

START_TEST(other_names_are_not)
{
	static const char *const names[] = {
		"",    ".", "..",   ".hidden",	"a/b",	"/",
		"a b", " ", "a\nb", "\xc3\xa4", "\x7f", "a\x1b[31m",
	};

	for (size_t i = 0; i < array_size(names); i++)
		ck_assert_msg(!file_name_is_plain(names[i], 16), "%s",
			      names[i]);
}
END_TEST

START_TEST(a_name_without_a_nul_is_not)
{
	ck_assert(!file_name_is_plain("open", 4));
	ck_assert(file_name_is_plain("open", 5));
	ck_assert(!file_name_is_plain("", 0));
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("base/file_name");
	TCase *tc = tcase_create("file_name");

	tcase_add_test(tc, one_component_of_printable_ascii_is_plain);
	tcase_add_test(tc, other_names_are_not);
	tcase_add_test(tc, a_name_without_a_nul_is_not);
	suite_add_tcase(s, tc);
	return s;
}
