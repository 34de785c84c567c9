#include "lib/base/digits.h"

#include "tests/unit/suite.h"

TEST(bytes_become_lower_case_hex)
{
	const uint8_t bytes[] = {0, 0x9f, 0xa0};
	char text[7];

	digits_of_bytes(bytes, 3, text);
	ck_assert_str_eq(text, "009fa0");
	digits_of_bytes(bytes, 0, text);
	ck_assert_str_eq(text, "");
	for (int c = -128; c < 128; c++)
		ck_assert_int_eq(digits_value((char)c), c >= '0' && c <= '9'   ? c - '0'
							: c >= 'a' && c <= 'f' ? c - 'a' + 10
									       : -1);
}

TEST(only_numbers_within_the_range_are_parsed)
{
	static const char *const none[] = {
		"", " 1", "+1", "-1", "1 ", "0x1", "1000", "2", "18446744073709551617"};
	uint64_t n = 7;

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		ck_assert_msg(!digits_number(none[i], 3, 999, &n), "%s", none[i]);
	ck_assert_uint_eq(n, 7);
	ck_assert(digits_number("003", 3, 999, &n));
	ck_assert_uint_eq(n, 3);
	ck_assert(digits_number("18446744073709551615", 0, UINT64_MAX, &n));
	ck_assert_uint_eq(n, UINT64_MAX);
	ck_assert(!digits_number("18446744073709551616", 0, UINT64_MAX, &n));
}

TEST(only_digits_are_a_pid)
{
	int32_t pid;

	ck_assert(digits_pid("12", &pid));
	ck_assert_int_eq(pid, 12);
	ck_assert(!digits_pid("", &pid));
	ck_assert(!digits_pid("12x", &pid));
	ck_assert(!digits_pid("0", &pid));
	ck_assert(!digits_pid("-3", &pid));
	ck_assert(!digits_pid("99999999999", &pid));
}
