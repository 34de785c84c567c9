/* A perf map that grows, is replaced, or is malformed. */
#include "lib/unwind/image/perf_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/random.h"
#include "tests/unit/suite.h"

static struct perf_map map;
static int fd; /* the file that map reads */

static void set_up(void)
{
	int copy;

	perf_map_init(&map);
	fd = suite_file("");
	copy = dup(fd);
	ck_assert_int_ge(copy, 0);
	perf_map_open(&map, copy);
}

static void tear_down(void)
{
	perf_map_fini(&map);
	close_fd(&fd);
}

static void append(const char *text)
{
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	perf_map_reset_reads(&map);
	OK(perf_map_update(&map));
}

static void expect(uint64_t addr, const char *name, uint64_t offset)
{
	const char *found;
	uint64_t at;

	ck_assert_msg(perf_map_find(&map, addr, &found, &at), "%s", name);
	ck_assert_str_eq(found, name);
	ck_assert_uint_eq(at, offset);
}

static void expect_none(uint64_t addr)
{
	const char *found;
	uint64_t at;

	ck_assert(!perf_map_find(&map, addr, &found, &at));
}

FIXTURE(set_up, tear_down)

TEST(a_line_names_the_addresses_of_its_range)
{
	expect_none(0x1000);
	append("1000 20 first\n"
	       "0x2000 0x10 a name of words()\n"
	       "fffffffffffffff0 f last\n");
	expect_none(0xfff);
	expect(0x1000, "first", 0);
	expect(0x101f, "first", 0x1f);
	expect_none(0x1020);
	expect(0x200f, "a name of words()", 0xf);
	expect(UINT64_MAX - 1, "last", 14);
	expect_none(UINT64_MAX);
}

TEST(malformed_lines_are_skipped)
{
	append("1000\n1000 20\n1000 20 \n 1000 20 x\nx 20 x\n1000 x x\n"
	       "1000 0 empty\n1000 4000001 large\n"
	       "ffffffffffffffff 2 wraps\n12345678123456781 1 long\n"
	       "-1000 20 x\n\n1000 -20 x\n2000 20 right\n");
	ck_assert_uint_eq(map.n, 1);
	expect(0x2000, "right", 0);
}

TEST(appended_lines_are_added)
{
	append("1000 20 first\n2000 20 sec");
	expect_none(0x2000);
	append("ond\n");
	expect(0x2000, "second", 0);
	append("1800 20 between\n800 20 before\n");
	expect(0x1000, "first", 0);
	expect(0x1800, "between", 0);
	expect(0x81f, "before", 0x1f);
	expect(0x2000, "second", 0);
	ck_assert_uint_eq(map.n, 4);
}

/* The code was moved. */
TEST(a_later_line_replaces_what_it_overlaps)
{
	append("1000 100 old\n1200 100 other\n");
	append("1080 10 new\n");
	expect(0x1080, "new", 0);
	expect_none(0x1000);
	expect_none(0x1090);
	expect(0x1200, "other", 0);
	append("1000 400 all\n");
	expect(0x1080, "all", 0x80);
	expect(0x1200, "all", 0x200);
	ck_assert_uint_eq(map.n, 1);
	append("1000 400 again\n");
	expect(0x1000, "again", 0);
	ck_assert_uint_eq(map.n, 1);
}

TEST(another_or_a_shorter_file_replaces_all_entries)
{
	int other = suite_file("");

	append("1000 20 first\n");
	/* The same file by another descriptor. */
	perf_map_open(&map, dup(fd));
	expect(0x1000, "first", 0);
	/* The file was truncated and written again. */
	OK(ftruncate(fd, 0));
	OK(lseek(fd, 0, SEEK_SET));
	append("3000 5 x\n");
	expect_none(0x1000);
	expect(0x3000, "x", 0);
	perf_map_open(&map, dup(other));
	expect_none(0x3000);
	close_fd(&fd);
	fd = other;
	append("4000 20 third\n");
	expect(0x4000, "third", 0);
}

/* HotSpot writes all its code each time it is asked to, and has compiled more since. */
TEST(a_file_that_is_written_again_and_longer_replaces_all_entries)
{
	append("1000 20 first\n2000 20 second\n");
	OK(ftruncate(fd, 0));
	OK(lseek(fd, 0, SEEK_SET));
	append("1000 20 other\n1800 20 new\n2800 20 second\n3000 20 last\n");
	expect(0x1000, "other", 0);
	expect(0x1800, "new", 0);
	expect_none(0x2000);
	expect(0x3000, "last", 0);
	ck_assert_uint_eq(map.n, 4);
	append("4000 20 appended\n");
	expect(0x4000, "appended", 0);
	expect(0x1800, "new", 0);
}

TEST(updates_are_limited_until_the_reset)
{
	for (int i = 0; i < PERF_MAP_READS_MAX + 1; i++) {
		char line[64];
		int n = snprintf(line, sizeof(line), "%x 10 f%d\n", 0x1000 * (i + 1), i);

		ck_assert_int_eq(write(fd, line, (size_t)n), n);
		OK(perf_map_update(&map));
		/* Without new lines an update costs nothing. */
		OK(perf_map_update(&map));
	}
	ck_assert_uint_eq(map.n, PERF_MAP_READS_MAX);
	append("");
	ck_assert_uint_eq(map.n, PERF_MAP_READS_MAX + 1);
}

/* The expected name is that of the last line with the address. */
TEST(many_overlapping_lines_give_the_latest_name)
{
	enum { LINES = 3000, RANGE = 1 << 16 };
	static uint32_t owner[RANGE]; /* line + 1 of each address */
	static uint32_t alive[LINES + 1];
	uint64_t random = 3;

	for (uint32_t i = 1; i <= LINES; i++) {
		uint32_t start = (uint32_t)(random_next(&random) % RANGE);
		uint32_t size = 1 + (uint32_t)(random_next(&random) % 64);
		char line[64];

		(void)snprintf(line, sizeof(line), "%x %x f%u\n", start + 1, size, i);
		ck_assert_int_eq(write(fd, line, strlen(line)), (ssize_t)strlen(line));
		alive[i] = 1;
		for (uint32_t at = start; at < start + size && at < RANGE; at++) {
			alive[owner[at]] = 0;
			owner[at] = i;
		}
		if (i % 100 == 0)
			append("");
	}
	for (uint32_t at = 0; at < RANGE; at++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "f%u", owner[at]);
		if (owner[at] != 0 && alive[owner[at]]) {
			const char *found;
			uint64_t offset;

			ck_assert(perf_map_find(&map, at + 1, &found, &offset));
			ck_assert_str_eq(found, name);
		}
	}
}

TEST(random_bytes_leave_sorted_entries)
{
	uint64_t random = 5;
	char *bytes = malloc(300000);

	ck_assert_ptr_nonnull(bytes);
	for (size_t i = 0; i < 300000; i++)
		bytes[i] = "0123456789abcdef  \n\nxX\0\xff\x80"[random_next(&random) % 26];
	/* A line longer than a block. */
	memset(bytes + 100000, '1', 150000);
	ck_assert_int_eq(write(fd, bytes, 300000), 300000);
	append("\n1234567 8 right\n");
	expect(0x1234567, "right", 0);
	for (size_t i = 1; i < map.n; i++)
		ck_assert_uint_le(map.v[i - 1].start + map.v[i - 1].size, map.v[i].start);
	free(bytes);
}
