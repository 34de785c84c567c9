#include "proto/json_out.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "tests/unit/suite.h"

static struct json_out out;
static FILE *file;
static char *text;
static size_t size;

static void set_up(void)
{
	file = open_memstream(&text, &size);
	ck_assert_ptr_nonnull(file);
	json_out_init(&out, file);
}

static void tear_down(void)
{
	(void)fclose(file);
	free(text);
}

FIXTURE(set_up, tear_down)

TEST(numbers_and_addresses_are_written)
{
	json_out_u64(&out, 0);
	json_out_raw(&out, " ");
	json_out_u64(&out, UINT64_MAX);
	json_out_raw(&out, " ");
	json_out_addr(&out, 0);
	json_out_raw(&out, " ");
	json_out_addr(&out, 0x10f);
	json_out_raw(&out, " ");
	json_out_addr(&out, UINT64_MAX);
	OK(json_out_finish(&out));
	ck_assert_str_eq(text, "0 18446744073709551615 \"0x0\" \"0x10f\" "
			       "\"0xffffffffffffffff\"");
}

TEST(microseconds_are_written_as_seconds)
{
	json_out_seconds(&out, 0);
	json_out_raw(&out, " ");
	json_out_seconds(&out, 1);
	json_out_raw(&out, " ");
	json_out_seconds(&out, 999999);
	json_out_raw(&out, " ");
	json_out_seconds(&out, 1724777211503778);
	json_out_raw(&out, " ");
	json_out_seconds(&out, 1724777211500000);
	json_out_raw(&out, " ");
	json_out_seconds(&out, 1724777211000000);
	json_out_raw(&out, " ");
	json_out_seconds(&out, UINT64_MAX);
	OK(json_out_finish(&out));
	ck_assert_str_eq(text, "0.0 0.000001 0.999999 1724777211.503778 "
			       "1724777211.5 1724777211.0 "
			       "18446744073709.551615");
}

TEST(strings_are_escaped)
{
	json_t *parsed;

	json_out_string(&out, "\x01\x1f\"\\/\x7f\xe2\x82\xac");
	OK(json_out_finish(&out));
	parsed = json_loads(text, JSON_DECODE_ANY, NULL);
	ck_assert_ptr_nonnull(parsed);
	ck_assert_str_eq(json_string_value(parsed), "\x01\x1f\"\\/\x7f\xe2\x82\xac");
	json_decref(parsed);
}

TEST(output_longer_than_the_buffer_is_complete)
{
	size_t total = 0;
	char digits[21];

	for (uint64_t i = 0; i < 20000; i++) {
		json_out_u64(&out, i);
		total += (size_t)snprintf(digits, sizeof(digits), "%d", (int)i);
	}
	OK(json_out_finish(&out));
	ck_assert_uint_eq(size, total);
	for (size_t i = 0, at = 0; i < 20000; i++) {
		int n = snprintf(digits, sizeof(digits), "%zu", i);

		ck_assert_mem_eq(text + at, digits, (size_t)n);
		at += (size_t)n;
	}
}

TEST(invalid_utf8_is_an_error)
{
	json_out_string(&out, "\xff");
	ck_assert_int_eq(json_out_finish(&out), -EINVAL);
}

/* Nothing is written after an error. */
TEST(the_first_error_stays)
{
	FILE *full = fopen("/dev/full", "w");

	ck_assert_ptr_nonnull(full);
	json_out_init(&out, full);
	for (int i = 0; i < 100000; i++)
		json_out_raw(&out, "0123456789");
	ck_assert_int_eq(json_out_finish(&out), -ENOSPC);
	json_out_string(&out, "\xff");
	ck_assert_int_eq(json_out_finish(&out), -ENOSPC);
	(void)fclose(full);

	full = fopen("/dev/full", "w");
	json_out_init(&out, full);
	json_out_raw(&out, "[]");
	ck_assert_int_eq(json_out_finish(&out), -ENOSPC);
	(void)fclose(full);
}
