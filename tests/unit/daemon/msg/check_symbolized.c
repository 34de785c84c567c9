#include "daemon/msg/symbolized.h"

#include <stdlib.h>
#include <string.h>

#include "lib/aggregate/names.h"
#include "tests/unit/suite.h"

static const struct symbolized_pc two = {
	.frames = {{"inner", "a.h", 7}, {"outer", NULL, 0}},
	.n = 2,
};
static const struct symbolized_pc nothing = {.n = 1};

static void add(struct buf *b, const struct symbolized_pc *p)
{
	OK(symbolized_add(b, p));
}

static int next(const void *bytes, size_t size, struct symbolized_pc *ret)
{
	struct symbolized_cursor c = {bytes, size};

	return symbolized_next(&c, ret);
}

TEST(written_addresses_are_read_back)
{
	struct symbolized_cursor c;
	struct symbolized_pc p;
	struct buf b;

	buf_init(&b, 1000);
	add(&b, &two);
	add(&b, &nothing);
	c = (struct symbolized_cursor){(const uint8_t *)b.data, b.len};
	ck_assert_int_eq(symbolized_next(&c, &p), 0);
	ck_assert_uint_eq(p.n, 2);
	ck_assert_str_eq(p.frames[0].function, "inner");
	ck_assert_str_eq(p.frames[0].file, "a.h");
	ck_assert_uint_eq(p.frames[0].line, 7);
	ck_assert_str_eq(p.frames[1].function, "outer");
	ck_assert_ptr_null(p.frames[1].file);
	ck_assert_uint_eq(p.frames[1].line, 0);
	ck_assert_int_eq(symbolized_next(&c, &p), 0);
	ck_assert_uint_eq(p.n, 1);
	ck_assert_ptr_null(p.frames[0].function);
	ck_assert_uint_eq(c.left, 0);
	ck_assert_int_eq(symbolized_next(&c, &p), -EBADMSG);
	buf_fini(&b);
}

TEST(truncated_answers_are_refused)
{
	struct symbolized_pc p;
	struct buf b;

	buf_init(&b, 1000);
	add(&b, &two);
	for (size_t size = 0; size < b.len; size++) {
		char *exact = malloc(size + 1);

		memcpy(exact, b.data, size);
		ck_assert_int_eq(next(exact, size, &p), -EBADMSG);
		free(exact);
	}
	buf_fini(&b);
}

/* Writes p, which is invalid, by symbolized_add(), which checks nothing; reading must fail. */
static void refuse(const struct symbolized_pc *p)
{
	struct symbolized_pc out;
	struct buf b;

	buf_init(&b, 100000);
	add(&b, p);
	ck_assert_int_eq(next(b.data, b.len, &out), -EBADMSG);
	buf_fini(&b);
}

TEST(invalid_texts_and_lines_are_refused)
{
	char long_name[NAME_SIZE + 1];
	struct symbolized_pc p = {.frames = {{"\xff", NULL, 0}}, .n = 1};

	refuse(&p);
	p.frames[0] = (struct symbolized_frame){"f", "\xed\xa0\x80", 0};
	refuse(&p);
	p.frames[0].file = "";
	refuse(&p);
	memset(long_name, 'x', NAME_SIZE);
	long_name[NAME_SIZE] = '\0';
	p.frames[0].file = long_name;
	refuse(&p);
	p.frames[0] = (struct symbolized_frame){"f", NULL, UINT32_MAX};
	refuse(&p);
}

TEST(impossible_lists_of_frames_are_refused)
{
	static const uint32_t none[4] = {0}, many[4] = {UNWIND_LINES_MAX + 1};
	struct symbolized_pc p = {.frames = {{NULL, "f.c", 1}, {"f"}}, .n = 2};

	ck_assert_int_eq(next(none, sizeof(none), &p), -EBADMSG);
	ck_assert_int_eq(next(many, sizeof(many), &p), -EBADMSG);
	p = (struct symbolized_pc){.frames = {{NULL, "f.c", 1}, {"f"}}, .n = 2};
	refuse(&p);
}

/* A text has one NUL, as its last byte. */
TEST(texts_without_a_nul_or_with_two_are_refused)
{
	struct symbolized_pc p = {.frames = {{"name", NULL, 0}}, .n = 1};
	struct symbolized_pc out;
	struct buf b;

	buf_init(&b, 1000);
	add(&b, &p);
	ck_assert_int_eq(next(b.data, b.len, &out), 0);
	b.data[b.len - 1] = 'x';
	ck_assert_int_eq(next(b.data, b.len, &out), -EBADMSG);
	b.data[b.len - 1] = '\0';
	b.data[b.len - 3] = '\0';
	ck_assert_int_eq(next(b.data, b.len, &out), -EBADMSG);
	buf_fini(&b);
}
