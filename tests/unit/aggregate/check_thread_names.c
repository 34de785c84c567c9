#include "lib/aggregate/thread_names.h"

#include "tests/unit/suite.h"

TEST(told_apart)
{
	struct profile_thread threads[] = {
		{1, "main", 0},	  {2, "worker", 0},
		{3, "", 0},	  {4, "worker", UINT64_C(139822334576320)},
		{5, "", 0},	  {6, "other", 0},
		{7, "worker", 0}, {8, "work", UINT64_MAX},
		{9, "work", 0},
	};
	static const char *const expected[] = {
		"main",	    "worker (2)", "",		"worker (139822334576320)",
		"",	    "other",	  "worker (7)", "work (18446744073709551615)",
		"work (9)",
	};
	struct text text;

	text_init(&text, 1);
	OK(thread_names_tell_apart(threads, array_size(threads), &text));
	for (size_t i = 0; i < array_size(threads); i++) {
		ck_assert_uint_eq(threads[i].tid, i + 1);
		ck_assert_str_eq(threads[i].name, expected[i]);
	}
	text_fini(&text);
}

TEST(few)
{
	struct profile_thread one = {1, "main", 0};

	OK(thread_names_tell_apart(NULL, 0, NULL));
	OK(thread_names_tell_apart(&one, 1, NULL));
	ck_assert_str_eq(one.name, "main");
}
