#include "proto/client_report.h"

#include <jansson.h>
#include <string.h>

#include "tests/unit/suite.h"

TEST(only_counts_above_zero_are_written)
{
	const struct client_report r = {
		.quantity[ENVELOPE_CHUNK] =
			{
				[CLIENT_REPORT_QUEUE_OVERFLOW] = 2,
				[CLIENT_REPORT_SEND_ERROR] = 3,
			},
	};
	char text[CLIENT_REPORT_SIZE];
	size_t len;

	client_report_json(&r, 1767323045, text, &len);
	ck_assert_str_eq(text, "{\"timestamp\":1767323045,\"discarded_events\":["
			       "{\"reason\":\"queue_overflow\","
			       "\"category\":\"profile_chunk\",\"quantity\":2},"
			       "{\"reason\":\"send_error\","
			       "\"category\":\"profile_chunk\",\"quantity\":3}]}");
	ck_assert_uint_eq(len, strlen(text));
	ck_assert(!client_report_is_empty(&r));
}

/* A lost V1 envelope counts as a transaction, a span and a profile. */
TEST(counts_v1_in_three_categories)
{
	const struct client_report r = {
		.quantity[ENVELOPE_CHUNK][CLIENT_REPORT_SEND_ERROR] = 1,
		.quantity[ENVELOPE_V1][CLIENT_REPORT_SEND_ERROR] = 2,
	};
	char text[CLIENT_REPORT_SIZE];
	size_t len;

	client_report_json(&r, 5, text, &len);
	ck_assert_str_eq(text, "{\"timestamp\":5,\"discarded_events\":["
			       "{\"reason\":\"send_error\","
			       "\"category\":\"profile_chunk\",\"quantity\":1},"
			       "{\"reason\":\"send_error\","
			       "\"category\":\"transaction\",\"quantity\":2},"
			       "{\"reason\":\"send_error\","
			       "\"category\":\"span\",\"quantity\":2},"
			       "{\"reason\":\"send_error\","
			       "\"category\":\"profile\",\"quantity\":2}]}");
	ck_assert(!client_report_is_empty(&r));
}

TEST(an_empty_report_has_no_events)
{
	const struct client_report r = {0};
	char text[CLIENT_REPORT_SIZE];
	size_t len;

	ck_assert(client_report_is_empty(&r));
	client_report_json(&r, 0, text, &len);
	ck_assert_str_eq(text, "{\"timestamp\":0,\"discarded_events\":[]}");
}

TEST(the_longest_report_fits)
{
	char text[CLIENT_REPORT_SIZE];
	struct client_report r;
	json_t *parsed, *events;
	size_t len;

	memset(&r, 0xff, sizeof(r));
	client_report_json(&r, INT64_MIN, text, &len);
	ck_assert_uint_eq(len, strlen(text));
	/* jansson has no numbers above INT64_MAX. */
	memset(&r, 0x7f, sizeof(r));
	client_report_json(&r, 1, text, &len);
	parsed = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	ck_assert_ptr_nonnull(parsed);
	events = json_object_get(parsed, "discarded_events");
	/* A chunk counts in one category, V1 in three. */
	ck_assert_uint_eq(json_array_size(events), 4 * CLIENT_REPORT_REASON_N);
	for (size_t i = 0; i < json_array_size(events); i++) {
		const json_t *event = json_array_get(events, i);

		ck_assert_int_eq(json_integer_value(json_object_get(event, "quantity")),
				 INT64_C(0x7f7f7f7f7f7f7f7f));
		ck_assert_ptr_nonnull(json_object_get(event, "reason"));
		ck_assert_ptr_nonnull(json_object_get(event, "category"));
	}
	json_decref(parsed);
}
