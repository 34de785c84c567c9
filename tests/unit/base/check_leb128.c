#include "lib/base/leb128.h"

#include "lib/base/util.h"
#include "tests/unit/suite.h"

static const struct {
	const char *bytes;
	size_t n;
	bool found;
	uint64_t value;
} cases[] = {
	{"\x02", 1, true, 2},
	{"\x7f\x01", 2, true, 127}, /* the second byte is another number */
	{"\x80\x01", 2, true, 128},
	{"\x81\x80\x00", 3, true, 1},
	{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, true, UINT64_MAX},
	{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, false, 0},
	{"\x80\x80", 2, false, 0},
	{"", 0, false, 0},
};

TESTS(numbers_are_read_up_to_their_last_byte, array_size(cases))
{
	const uint8_t *at = (const uint8_t *)cases[_i].bytes;
	const uint8_t *end = at + cases[_i].n;
	uint64_t value;

	ck_assert(leb128_read(&at, end, &value) == cases[_i].found);
	if (cases[_i].found)
		ck_assert_uint_eq(value, cases[_i].value);
	ck_assert(at <= end);
}
