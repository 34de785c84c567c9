#include "daemon/ctl/convert/formats.h"

#include "daemon/common/output_format.h"
#include "tests/unit/suite.h"

static void check_suffix(const char *path, const char *name)
{
	const struct format *found = format_by_suffix(path);

	if (name == NULL)
		ck_assert_msg(found == NULL, "%s", path);
	else
		ck_assert_msg(found != NULL && found == format_by_name(name), "%s", path);
}

TEST(the_longest_suffix_counts)
{
	check_suffix("a/b.json", "json");
	check_suffix("b.speedscope.json", "speedscope");
	check_suffix("b.firefox.json", "firefox");
	check_suffix("b.json.folded", "folded");
	check_suffix("b.pb.gz", "pprof");
	check_suffix("b.gz", NULL);
	check_suffix("json", NULL);
	check_suffix(".json", NULL);
	check_suffix("", NULL);
}

TEST(each_format_has_its_name_and_suffix)
{
	for (size_t i = 0; i < OUTPUT_FORMATS_N; i++) {
		const struct format *f = format_by_name(output_formats[i].name);
		char path[64];

		ck_assert_ptr_nonnull(f);
		(void)snprintf(path, sizeof(path), "x%s", output_formats[i].suffix);
		ck_assert_ptr_eq(format_by_suffix(path), f);
		for (size_t k = 0; k < i; k++)
			ck_assert_ptr_ne(format_by_name(output_formats[k].name), f);
	}
	ck_assert_ptr_null(format_by_name("png"));
	ck_assert_ptr_null(format_by_name(""));
}
