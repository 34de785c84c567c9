#include "proto/envelope.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/suite.h"

static struct envelope_fields make_envelope(void)
{
	return (struct envelope_fields){
		.event_id = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb,
			     0xcc, 0xdd, 0xee, 0xff},
		.sent_at_us = 1767323045000678,
		.sdk_name = "sentry.native.profd",
		.sdk_version = "0.1.0",
	};
}

static struct envelope_item make_item(void)
{
	return (struct envelope_item){
		.type = "profile_chunk",
		.platform = "rust",
		.content_type = "application/json",
		.length = 1234567,
	};
}

TEST(the_header_has_id_time_and_sdk)
{
	char line[ENVELOPE_HEADER_SIZE];
	struct envelope_fields e = make_envelope();
	size_t len;

	OK(envelope_header(&e, line, sizeof(line), &len));
	ck_assert_str_eq(line, "{\"event_id\":\"00112233445566778899aabbccddeeff\","
			       "\"sent_at\":\"2026-01-02T03:04:05.000678Z\","
			       "\"sdk\":{\"name\":\"sentry.native.profd\","
			       "\"version\":\"0.1.0\"}}\n");
	ck_assert_uint_eq(len, strlen(line));
}

TEST(without_a_time_the_header_has_no_sent_at)
{
	char line[ENVELOPE_HEADER_SIZE];
	struct envelope_fields e = make_envelope();
	size_t len;

	e.sent_at_us = ENVELOPE_NOT_SENT;
	OK(envelope_header(&e, line, sizeof(line), &len));
	ck_assert_str_eq(line, "{\"event_id\":\"00112233445566778899aabbccddeeff\","
			       "\"sdk\":{\"name\":\"sentry.native.profd\","
			       "\"version\":\"0.1.0\"}}\n");
}

TEST(the_item_header_has_its_members)
{
	char line[ENVELOPE_HEADER_SIZE];
	struct envelope_item item = make_item();
	size_t len;

	OK(envelope_item_header(&item, line, sizeof(line), &len));
	ck_assert_str_eq(line, "{\"type\":\"profile_chunk\","
			       "\"platform\":\"rust\",\"length\":1234567,"
			       "\"content_type\":\"application/json\"}\n");
	ck_assert_uint_eq(len, strlen(line));

	item.type = "client_report";
	item.platform = NULL;
	item.content_type = NULL;
	item.length = 0;
	OK(envelope_item_header(&item, line, sizeof(line), &len));
	ck_assert_str_eq(line, "{\"type\":\"client_report\",\"length\":0}\n");
}

TEST(texts_are_escaped)
{
	char line[ENVELOPE_HEADER_SIZE];
	struct envelope_item item = make_item();
	size_t len;

	item.platform = "a\"b\nc\\";
	OK(envelope_item_header(&item, line, sizeof(line), &len));
	HAS(line, "\"a\\\"b\\nc\\\\\"");
	ck_assert_ptr_eq(strchr(line, '\n'), line + len - 1);
}

TEST(invalid_times_texts_and_lengths_are_refused)
{
	char line[ENVELOPE_HEADER_SIZE];
	struct envelope_fields e = make_envelope();
	struct envelope_item item = make_item();
	size_t len;

	e.sent_at_us = -1;
	ck_assert_int_eq(envelope_header(&e, line, sizeof(line), &len), -EINVAL);
	e.sent_at_us = INT64_C(253402300800) * 1000000;
	ck_assert_int_eq(envelope_header(&e, line, sizeof(line), &len), -EINVAL);
	e.sent_at_us--;
	OK(envelope_header(&e, line, sizeof(line), &len));
	HAS(line, "\"9999-12-31T23:59:59.999999Z\"");
	item.platform = "\377";
	ck_assert_int_eq(envelope_item_header(&item, line, sizeof(line), &len), -EINVAL);
	item.platform = "rust";
	item.length = UINT64_MAX;
	ck_assert_int_eq(envelope_item_header(&item, line, sizeof(line), &len), -EINVAL);
}

TEST(a_buffer_that_is_too_small_is_not_overrun)
{
	char whole[ENVELOPE_HEADER_SIZE];
	char line[ENVELOPE_HEADER_SIZE + 1];
	struct envelope_item item = make_item();
	size_t need, len;

	OK(envelope_item_header(&item, whole, sizeof(whole), &need));
	for (size_t size = 0; size <= need + 1; size++) {
		int r;

		memset(line, 'x', sizeof(line));
		r = envelope_item_header(&item, line, size, &len);
		ck_assert_int_eq(r, size > need ? 0 : -E2BIG);
		ck_assert_int_eq(line[size], 'x');
	}
	ck_assert_str_eq(line, whole);
}

TEST(the_longest_platform_fits)
{
	char platform[256];
	char line[ENVELOPE_HEADER_SIZE];
	struct envelope_item item = make_item();
	size_t len;

	memset(platform, '\001', sizeof(platform) - 1);
	platform[sizeof(platform) - 1] = '\0';
	item.platform = platform;
	item.length = INT64_MAX;
	OK(envelope_item_header(&item, line, sizeof(line), &len));
	ck_assert_uint_gt(len, 6 * 255);
}
