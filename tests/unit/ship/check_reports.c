#include "lib/ship/reports.h"

#include <string.h>

#include "tests/unit/suite.h"

#define START_NS (1000 * NS_PER_SEC)

static struct reports reports;
static struct reports_item item;

static void setup(void)
{
	reports_init(&reports, START_NS);
}

static void take(uint64_t now_ns)
{
	OK(reports_take(&reports, now_ns, 5, &item));
	ck_assert_uint_lt(item.len, sizeof(item.text));
	item.text[item.len] = '\0';
}

FIXTURE(setup, NULL)

TEST(a_report_is_an_item_of_an_envelope)
{
	reports_count(&reports, ENVELOPE_CHUNK, CLIENT_REPORT_SEND_ERROR, 1);
	take(START_NS);
	ck_assert_str_eq(item.text, "{\"type\":\"client_report\",\"length\":100}\n"
				    "{\"timestamp\":5,\"discarded_events\":["
				    "{\"reason\":\"send_error\","
				    "\"category\":\"profile_chunk\",\"quantity\":1}]}\n");
}

TEST(a_report_is_due_after_a_loss)
{
	ck_assert(!reports_any(&reports));
	ck_assert_uint_eq(reports_with_envelope_ns(&reports), UINT64_MAX);
	ck_assert_uint_eq(reports_alone_ns(&reports), UINT64_MAX);
	reports_count(&reports, ENVELOPE_CHUNK, CLIENT_REPORT_SEND_ERROR, 1);
	ck_assert(reports_any(&reports));
	ck_assert_uint_eq(reports_with_envelope_ns(&reports), START_NS + 30 * NS_PER_SEC);
	ck_assert_uint_eq(reports_alone_ns(&reports), START_NS + 60 * NS_PER_SEC);
}

TEST(a_report_that_arrived_is_not_sent_again)
{
	reports_count(&reports, ENVELOPE_CHUNK, CLIENT_REPORT_SEND_ERROR, 1);
	take(START_NS + NS_PER_SEC);
	/* While a report is in flight, losses are counted for the next one. */
	ck_assert(!reports_any(&reports));
	reports_count(&reports, ENVELOPE_CHUNK, CLIENT_REPORT_NETWORK_ERROR, 1);
	ck_assert(!reports_any(&reports));
	reports_arrived(&reports);
	ck_assert_uint_eq(reports_with_envelope_ns(&reports), START_NS + 31 * NS_PER_SEC);
	take(START_NS + 40 * NS_PER_SEC);
	HAS(item.text, "network_error");
	LACKS(item.text, "send_error");
	reports_arrived(&reports);
	ck_assert(!reports_any(&reports));
	reports_arrived(&reports);
	reports_failed(&reports);
	ck_assert(!reports_any(&reports));
}

TEST(counts_of_a_report_that_did_not_arrive_go_into_the_next)
{
	reports_count(&reports, ENVELOPE_CHUNK, CLIENT_REPORT_SEND_ERROR, 3);
	take(START_NS + NS_PER_SEC);
	reports_count(&reports, ENVELOPE_CHUNK, CLIENT_REPORT_SEND_ERROR, 4);
	reports_count(&reports, ENVELOPE_V1, CLIENT_REPORT_SEND_ERROR, 5);
	reports_failed(&reports);
	/* Its next time is not now. */
	ck_assert_uint_eq(reports_alone_ns(&reports), START_NS + 61 * NS_PER_SEC);
	take(START_NS + 61 * NS_PER_SEC);
	HAS(item.text, "\"quantity\":7}");
	reports_failed(&reports);
	take(START_NS + 122 * NS_PER_SEC);
	HAS(item.text, "\"profile_chunk\","
		       "\"quantity\":7}");
	HAS(item.text, "\"transaction\","
		       "\"quantity\":5}");
}
