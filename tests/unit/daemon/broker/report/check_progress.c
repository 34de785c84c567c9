#include "daemon/broker/report/progress.h"

#include <string.h>

#include "tests/unit/suite.h"

TEST(a_line_has_all_numbers_and_fits_its_buffer)
{
	char text[PROGRESS_SIZE];
	struct progress_numbers f = {0, 1, 0, 0, 1};

	progress_format(&f, text);
	ck_assert_str_eq(text, "0 s, 1 thread, 0 samples, 0 missed, 1 chunk");
	f = (struct progress_numbers){86400, 1000, 123456789, 12, 1440};
	progress_format(&f, text);
	ck_assert_str_eq(text, "86400 s, 1000 threads, 123456789 samples, "
			       "12 missed, 1440 chunks");
	ck_assert_uint_lt(strlen(text), 80);
	f = (struct progress_numbers){UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
	progress_format(&f, text);
	ck_assert_uint_lt(strlen(text), PROGRESS_SIZE);
}
