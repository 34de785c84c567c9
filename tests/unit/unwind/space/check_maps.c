#include "lib/unwind/space/maps.h"

#include <string.h>
#include <sys/sysmacros.h>

#include "tests/unit/suite.h"

#define LINES_MAX 8

static int parse(struct maps *m, const char *text)
{
	return maps_parse(m, text, strlen(text), LINES_MAX);
}

TEST(executable_mappings_of_all_kinds_are_kept)
{
	static const char text[] = "55d0c0a00000-55d0c0a02000 r--p 00000000 fe:01 1234      "
				   "                 /usr/bin/a b\n"
				   "55d0c0a02000-55d0c0a05000 r-xp 00002000 fe:01 1234      "
				   "                 /usr/bin/a b\n"
				   "7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n"
				   "7f0000001000-7f0000002000 r-xs 00001000 00:2a "
				   "18446744073709551615"
				   "  /x\\012y (deleted)\n"
				   "7ffd5b1fe000-7ffd5b200000 r-xp 00000000 00:00 0          "
				   "                [vdso]\n"
				   "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0   "
				   "               [vsyscall]\n";
	struct maps m;

	OK(parse(&m, text));
	ck_assert_uint_eq(m.n, 5);
	ck_assert_str_eq(m.v[0].path, "/usr/bin/a b");
	ck_assert_uint_eq(m.v[0].start, 0x55d0c0a02000);
	ck_assert_uint_eq(m.v[0].end, 0x55d0c0a05000);
	ck_assert_uint_eq(m.v[0].offset, 0x2000);
	ck_assert_uint_eq(m.v[0].device, makedev(0xfe, 1));
	ck_assert_uint_eq(m.v[0].inode, 1234);
	ck_assert_str_eq(m.v[1].path, "");
	ck_assert_uint_eq(m.v[1].inode, 0);
	ck_assert_str_eq(m.v[2].path, "/x\ny");
	ck_assert_uint_eq(m.v[2].inode, UINT64_MAX);
	ck_assert_str_eq(m.v[3].path, "[vdso]");
	ck_assert_uint_eq(m.v[4].end, 0xffffffffff601000);
	maps_fini(&m);
}

TEST(an_address_finds_its_mapping)
{
	struct maps m;

	OK(parse(&m, "1000-2000 r-xp 0 00:00 0\n"
		     "2000-3000 rw-p 0 00:00 0\n"
		     "3000-4000 r-xp 0 00:00 0\n"));
	ck_assert_ptr_null(maps_find(&m, 0xfff));
	ck_assert_ptr_eq(maps_find(&m, 0x1000), &m.v[0]);
	ck_assert_ptr_eq(maps_find(&m, 0x1fff), &m.v[0]);
	ck_assert_ptr_null(maps_find(&m, 0x2000));
	ck_assert_ptr_null(maps_find(&m, 0x2fff));
	ck_assert_ptr_eq(maps_find(&m, 0x3fff), &m.v[1]);
	ck_assert_ptr_null(maps_find(&m, 0x4000));
	ck_assert_ptr_null(maps_find(&m, UINT64_MAX));
	maps_fini(&m);
}

/* The path of the mapping above the first one; NULL: there is none. */
static const struct {
	const char *text, *above;
} aboves[] = {
	/* Text in anonymous memory, all of it or a part. */
	{"1000-2000 r-xp 00000000 00:00 0\n"
	 "2000-3000 r--p 00002000 fe:01 1 /a\n",
	 "/a"},
	{"1000-2000 r-xp 00000000 00:00 0\n"
	 "2000-3000 r-xp 00002000 fe:01 1 /a\n"
	 "3000-4000 r--p 00003000 fe:01 1 /a\n",
	 "/a"},
	{"1000-2000 r-xp 00000000 00:00 0\n"
	 "2000-3000 rw-p 00000000 00:00 0\n"
	 "3000-4000 r-xp 00000000 00:00 0\n"
	 "4000-5000 r--p 00003000 fe:01 1 /a\n",
	 "/a"},
	/* In shared memory. */
	{"1000-2000 r-xs 00000000 00:01 7 /memfd:text (deleted)\n"
	 "2000-3000 r--p 00002000 fe:01 1 /a\n",
	 "/a"},
	{"1000-2000 r-xs 00000000 00:01 7 /memfd:text (deleted)\n"
	 "2000-3000 r-xs 00001000 00:01 8 /memfd:text (deleted)\n"
	 "3000-4000 r--p 00003000 fe:01 1 /a\n",
	 "/a"},
	/* The hot text of bolt -hugify: other files are above it. */
	{"1000-2000 r-xp 00000000 00:00 0\n"
	 "2000-3000 r-xp 00002000 fe:01 1 /a\n"
	 "3000-4000 r--p 00000000 fe:01 2 /b\n"
	 "4000-5000 r-xp 00001000 fe:01 2 /b\n",
	 "/a"},
	/* A part of the file that the dynamic linker has made inaccessible is not at its place. */
	{"1000-2000 r-xp 00000000 00:00 0\n"
	 "2000-3000 ---p 00002000 fe:01 1 /b\n"
	 "3000-4000 r--p 00002000 fe:01 1 /a\n",
	 "/a"},
	/* As far away as two segments can be, and a byte farther. */
	{"1000-2000 r-xp 00000000 00:00 0\n"
	 "1003000-1004000 r--p 00002000 fe:01 1 /a\n",
	 "/a"},
	{"1000-2000 r-xp 00000000 00:00 0\n"
	 "1003001-1004000 r--p 00002000 fe:01 1 /a\n",
	 NULL},
	/* Its own file; the beginning of a file; no file. */
	{"1000-2000 r-xp 00001000 fe:01 1 /a\n"
	 "2000-3000 r--p 00002000 fe:01 1 /a\n",
	 NULL},
	{"1000-2000 r-xp 00000000 00:00 0\n"
	 "2000-3000 r--p 00000000 fe:01 1 /a\n"
	 "3000-4000 r-xp 00001000 fe:01 1 /a\n",
	 NULL},
	{"1000-2000 r-xp 00000000 00:00 0\n"
	 "2000-3000 rw-p 00000000 00:00 0 [heap]\n",
	 NULL},
};

TESTS(the_file_above_a_mapping_is_kept_if_it_may_belong_there, array_size(aboves))
{
	const struct map *above;
	struct maps m;

	OK(parse(&m, aboves[_i].text));
	above = maps_above(&m, &m.v[0]);
	if (aboves[_i].above == NULL)
		ck_assert_ptr_null(above);
	else
		ck_assert_str_eq(above->path, aboves[_i].above);
	maps_fini(&m);
}

static const char *const malformed[] = {
	"1000-2000 r-xp 0 00:00 0", /* cut off */
	"\n",
	"1000 r-xp 0 00:00 0\n",
	"2000-1000 r-xp 0 00:00 0\n",
	"1000-1000 r-xp 0 00:00 0\n",
	"1000-2000 r-x 0 00:00 0\n",
	"1000-2000 r-xq 0 00:00 0\n",
	"1000-2000 r-xp 0 0000 0\n",
	"1000-2000 r-xp 0 00:00 0x\n",
	"1000-2000 r-xp 0 00:00 \n",
	"1000-2000 r-xp g 00:00 0\n",
	"1000-2000 r-xp 0 100000000:00 0\n",
	"1000-11111111111111111 r-xp 0 00:00 0\n",
	"1000-2000 r-xp 0 00:00 18446744073709551616\n",
	" 1000-2000 r-xp 0 00:00 0\n",
	"-1000-2000 r-xp 0 00:00 0\n",
	"2000-3000 r-xp 0 00:00 0\n1000-2000 r-xp 0 00:00 0\n",
	"1000-3000 r-xp 0 00:00 0\n2000-4000 r-xp 0 00:00 0\n",
};

TESTS(malformed_lines_are_refused, array_size(malformed))
{
	struct maps m;

	ck_assert_int_eq(parse(&m, malformed[_i]), -EINVAL);
}

TEST(empty_text_is_valid_and_too_many_lines_are_refused)
{
	static const char line[] = "1000-2000 r--p 0 00:00 0\n";
	static const char nine[] = "\n\n\n\n\n\n\n\n\n";
	struct maps m;

	OK(parse(&m, ""));
	ck_assert_uint_eq(m.n, 0);
	ck_assert_ptr_null(maps_find(&m, 0x1000));
	maps_fini(&m);
	OK(parse(&m, line));
	ck_assert_uint_eq(m.n, 0);
	maps_fini(&m);
	ck_assert_int_eq(parse(&m, nine), -E2BIG);
}
