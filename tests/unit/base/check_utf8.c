#include "lib/base/utf8.h"

#include "lib/base/util.h"
#include "tests/unit/suite.h"

static const struct {
	const char *s;
	size_t length;
	uint32_t code_point;
} sequences[] = {
	{"a", 1, 0x61},
	{"\x7f", 1, 0x7f},
	{"\x80", 0, 0},
	{"\xbf", 0, 0},
	{"\xc0\x80", 0, 0}, /* overlong */
	{"\xc1\xbf", 0, 0},
	{"\xc2\x80", 2, 0x80},
	{"\xc2", 0, 0},
	{"\xc2z", 0, 0},
	{"\xdf\xbf", 2, 0x7ff},
	{"\xe0\x9f\xbf", 0, 0}, /* overlong */
	{"\xe0\xa0\x80", 3, 0x800},
	{"\xe0\xa0", 0, 0},
	{"\xe2\x82\xac", 3, 0x20ac},
	{"\xed\x9f\xbf", 3, 0xd7ff},
	{"\xed\xa0\x80", 0, 0}, /* a surrogate */
	{"\xee\x80\x80", 3, 0xe000},
	{"\xf0\x8f\xbf\xbf", 0, 0}, /* overlong */
	{"\xf0\x90\x80\x80", 4, 0x10000},
	{"\xf0\x90\x80", 0, 0},
	{"\xf4\x8f\xbf\xbf", 4, 0x10ffff},
	{"\xf4\x90\x80\x80", 0, 0}, /* above U+10FFFF */
	{"\xf5\x80\x80\x80", 0, 0},
	{"\xff", 0, 0},
};

TESTS(lengths_and_code_points_are_as_the_table_says, array_size(sequences))
{
	const size_t length = utf8_length(sequences[_i].s);

	ck_assert_uint_eq(length, sequences[_i].length);
	if (length > 0)
		ck_assert_uint_eq(utf8_code_point(sequences[_i].s, length),
				  sequences[_i].code_point);
}

#define R "\xef\xbf\xbd"

static const struct {
	const char *in;
	bool keep_control;
	size_t size;
	const char *out;
} cleaned[] = {
	{"", true, 1, ""},
	{"plain", true, 100, "plain"},
	{"\xc3\xa4\xe2\x82\xac", true, 100, "\xc3\xa4\xe2\x82\xac"},
	{"a\xff\xfe"
	 "b",
	 true, 100, "a" R R "b"},
	{"\xc3", true, 100, R},
	{"a\nb\x7f", true, 100, "a\nb\x7f"},
	{"a\nb\x7f\x1b[31m", false, 100, "a" R "b" R R "[31m"},
	{"\xc2\x85\xc2\xa0", false, 100, R "\xc2\xa0"},
	/* Cut between characters. */
	{"abc", true, 4, "abc"},
	{"abcd", true, 4, "abc"},
	{"ab\xc3\xa4", true, 4, "ab"},
	{"a\xff", true, 4, "a"},
	{"abc", true, 1, ""},
};

TESTS(invalid_bytes_and_control_characters_are_replaced, array_size(cleaned))
{
	char out[128];

	memset(out, 'x', sizeof(out));
	utf8_clean(cleaned[_i].in, cleaned[_i].keep_control, out, cleaned[_i].size);
	ck_assert_str_eq(out, cleaned[_i].out);
}
