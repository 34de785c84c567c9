#include "daemon/ctl/convert/formats.h"

#include <string.h>

#include "tests/unit/suite.h"

static void check_ending(const char *path, const char *name)
{
	const struct format *found = format_by_ending(path);

	if (name == NULL)
		ck_assert_msg(found == NULL, "%s", path);
	else
		ck_assert_msg(found != NULL && strcmp(found->is->format, name) == 0, "%s", path);
}

TEST(the_longest_ending_counts)
{
	check_ending("a/b.json", "json");
	check_ending("b.speedscope.json", "speedscope");
	check_ending("b.firefox.json", "firefox");
	check_ending("b.json.folded", "folded");
	check_ending("b.pb.gz", "pprof");
	check_ending("b.gz", NULL);
	check_ending("json", NULL);
	check_ending(".json", NULL);
	check_ending("", NULL);
}

TEST(names_and_endings_are_different)
{
	for (size_t i = 0; format_at(i) != NULL; i++) {
		const struct format *f = format_at(i);
		char path[64];

		ck_assert_ptr_eq(format_by_name(f->is->format), f);
		(void)snprintf(path, sizeof(path), "x%s", f->is->suffix);
		ck_assert_ptr_eq(format_by_ending(path), f);
	}
	ck_assert_ptr_null(format_by_name("svg"));
	ck_assert_ptr_null(format_by_name(""));
}
