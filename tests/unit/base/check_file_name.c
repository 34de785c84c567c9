#include "lib/base/file_name.h"

#include "lib/base/util.h"
#include "tests/unit/suite.h"

TEST(one_component_of_printable_ascii_is_plain)
{
	ck_assert(file_name_is_plain("libx.so.1.debug", 16));
	ck_assert(file_name_is_plain("0123.debug\0\1\2", 13));
	ck_assert(file_name_is_plain("~", 2));
}

TEST(other_names_are_not_plain)
{
	static const char *const names[] = {
		"",    ".", "..",   ".hidden",	"a/b",	"/",
		"a b", " ", "a\nb", "\xc3\xa4", "\x7f", "a\x1b[31m",
	};

	for (size_t i = 0; i < array_size(names); i++)
		ck_assert_msg(!file_name_is_plain(names[i], 16), "%s", names[i]);
}

TEST(a_name_without_a_nul_is_not_plain)
{
	ck_assert(!file_name_is_plain("open", 4));
	ck_assert(file_name_is_plain("open", 5));
	ck_assert(!file_name_is_plain("", 0));
}
