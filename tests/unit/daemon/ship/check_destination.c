/* The state that ship keeps of a server: rate limits, backoff, the difference of the clocks. */
#include "daemon/ship/destination.h"

#include <time.h>

#include "lib/base/clock.h"
#include "tests/unit/daemon/log_capture.h"
#include "tests/unit/daemon/suspended.h"
#include "tests/unit/suite.h"

static struct destination to;

static void set_up(void)
{
	destination_init(&to);
}

static void answer(int status, const char *limits, const char *retry_after)
{
	const struct transport_answer a = {
		.status = status,
		.error = status == 0 ? "nobody is there" : NULL,
		.rate_limits = limits,
		.retry_after = retry_after,
	};

	(void)destination_handle_answer(&to, &a, false);
}

static void no_answer(const char *why)
{
	const struct transport_answer a = {.error = why};

	(void)destination_handle_answer(&to, &a, false);
}

/* Checks that the limit has this length; up to half of it may have passed. */
static void check_limit(enum envelope_kind kind, uint64_t seconds)
{
	const uint64_t now_ns = clock_read_ns(CLOCK_BOOTTIME);
	const uint64_t until_ns = destination_limit_ns(&to, kind);

	ck_assert_uint_le(until_ns, now_ns + seconds * NS_PER_SEC);
	ck_assert_uint_gt(until_ns, now_ns + seconds / 2 * NS_PER_SEC);
}

FIXTURE(set_up, NULL)

TEST(each_kind_of_envelope_has_its_limits)
{
	answer(200, "600:profile_chunk:key", NULL);
	check_limit(ENVELOPE_CHUNK, 600);
	ck_assert_uint_eq(destination_limit_ns(&to, ENVELOPE_V1), 0);
	/* An envelope with several items is held back by the longest limit. */
	answer(200, "100:span:key, 900:transaction, 300:profile", NULL);
	check_limit(ENVELOPE_CHUNK, 600);
	check_limit(ENVELOPE_V1, 900);
	answer(429, NULL, "3600");
	check_limit(ENVELOPE_CHUNK, 3600);
	check_limit(ENVELOPE_V1, 3600);
	/* The limit that the broker knows is on envelopes of to.kind. */
	to.kind = ENVELOPE_V1;
	destination_set_dsn(&to, NULL, clock_boot_ns() + 60 * NS_PER_SEC, 0);
	check_limit(ENVELOPE_V1, 60);
	ck_assert_uint_eq(destination_limit_ns(&to, ENVELOPE_CHUNK), 0);
}

static void limit_while_suspended(void)
{
	uint64_t before_ns;

	answer(200, "600:profile_chunk:key", NULL);
	check_limit(ENVELOPE_CHUNK, 600);
	/* The broker's limit is a time of the same clock. */
	destination_set_dsn(&to, NULL, clock_read_ns(CLOCK_BOOTTIME) - NS_PER_SEC, 0);
	ck_assert_uint_lt(destination_limit_ns(&to, ENVELOPE_CHUNK), clock_read_ns(CLOCK_BOOTTIME));
	before_ns = clock_read_ns(CLOCK_BOOTTIME);
	answer(0, NULL, NULL);
	ck_assert_uint_ge(to.retry.until_ns, before_ns);
	ck_assert_uint_le(to.retry.until_ns, clock_read_ns(CLOCK_BOOTTIME) + RETRY_FIRST_NS);
}

/* A limit goes on while the machine sleeps. */
TEST(limits_and_backoff_go_on_during_a_suspend)
{
	suspended_run(limit_while_suspended);
}

TEST(each_reason_of_a_silence_is_logged)
{
	log_capture_begin();
	no_answer("Connection timed out after 10001 milliseconds");
	no_answer("Connection timed out after 9 milliseconds");
	ck_assert_uint_eq(log_capture_end("does not answer: Connection timed out after"), 1);
	log_capture_begin();
	no_answer("SSL certificate problem: certificate has expired");
	no_answer("SSL certificate problem: unable to get local issuer certificate");
	no_answer("SSL certificate problem: certificate has expired");
	ck_assert_uint_eq(log_capture_end("does not answer: SSL"), 3);
	to.retry_5xx = true;
	log_capture_begin();
	answer(502, NULL, NULL);
	answer(502, NULL, NULL);
	answer(503, NULL, NULL);
	ck_assert_uint_eq(log_capture_end("does not answer: HTTP status 50"), 2);
	log_capture_begin();
	answer(200, NULL, NULL);
	answer(200, NULL, NULL);
	ck_assert_uint_eq(log_capture_end("answers again"), 1);
	log_capture_begin();
	answer(503, NULL, NULL);
	ck_assert_uint_eq(log_capture_end("does not answer: HTTP status 503"), 1);
}

static enum outcome deny(int status, const char *body, bool is_probe)
{
	const struct transport_answer a = {
		.status = status, .body = body, .body_size = strlen(body)};

	return destination_handle_answer(&to, &a, is_probe);
}

/* A proxy requires a password, or a network a login; the server has not seen the envelope. */
TESTS(an_answer_that_no_server_gives_is_none, 2)
{
	const struct transport_answer a = {.status = _i == 0 ? 407 : 511};

	ck_assert_int_eq(destination_handle_answer(&to, &a, false), OUTCOME_NO_ANSWER);
	ck_assert_uint_eq(to.retry.failures, 1);
}

/* Failures of probes make the wait longer, until the server takes an envelope. */
TEST(a_denial_ends_with_a_probe)
{
	ck_assert_int_eq(deny(403, "{\"detail\":\"no such key\"}", false), OUTCOME_DENIED);
	ck_assert_int_eq(to.denial, 403);
	ck_assert_str_eq(to.denial_text, "no such key");
	ck_assert_int_eq(deny(401, "<html>", true), OUTCOME_DENIED);
	ck_assert_int_eq(to.denial, 401);
	ck_assert_str_eq(to.denial_text, "");
	for (int i = 0; i < 60; i++) {
		const uint64_t before_ns = clock_boot_ns();

		(void)deny(403, "", true);
		ck_assert_uint_le(to.retry.until_ns, clock_boot_ns() + RETRY_DENIED_MAX_NS);
		ck_assert_uint_ge(to.retry.until_ns, before_ns);
	}
	no_answer("down");
	ck_assert_int_eq(to.denial, 403);
	ck_assert_int_eq(deny(200, "{}", true), OUTCOME_ACCEPTED);
	ck_assert_int_eq(to.denial, 0);
	ck_assert(!destination_backs_off(&to, clock_boot_ns()));
	ck_assert_uint_gt(to.retry.failures, 60);
	ck_assert_int_eq(deny(200, "{}", false), OUTCOME_ACCEPTED);
	ck_assert_uint_eq(to.retry.failures, 0);
}

/* A firewall may refuse the bytes of one envelope, and no other. */
TEST(an_envelope_that_is_denied_after_a_probe_is_refused)
{
	ck_assert_int_eq(deny(403, "", false), OUTCOME_DENIED);
	ck_assert_int_eq(deny(200, "{}", true), OUTCOME_ACCEPTED);
	ck_assert_int_eq(deny(200, "{}", true), OUTCOME_ACCEPTED);
	ck_assert_int_eq(deny(403, "", false), OUTCOME_REFUSED);
	ck_assert_int_eq(to.denial, 403);
	ck_assert_uint_eq(to.retry.failures, 2);
	ck_assert_int_eq(deny(200, "{}", true), OUTCOME_ACCEPTED);
	ck_assert_int_eq(deny(200, "{}", false), OUTCOME_ACCEPTED);
	ck_assert_int_eq(deny(403, "", false), OUTCOME_DENIED);
}

TEST(spotlight_denies_nothing)
{
	to.is_spotlight = true;
	ck_assert_int_eq(deny(403, "", false), OUTCOME_REFUSED);
	ck_assert_int_eq(to.denial, 0);
}

static int64_t wall_s(void)
{
	return (int64_t)(clock_wall_ns() / NS_PER_SEC);
}

/* Handles an answer whose Date is after_s later than now. */
static void answer_dated(int after_s)
{
	const struct transport_answer a = {.status = 200, .date_s = wall_s() + after_s};

	destination_note_request(&to);
	(void)destination_handle_answer(&to, &a, false);
}

TEST(the_dates_of_answers_tell_the_clock_difference)
{
	struct transport_answer a = {.status = 200};

	answer_dated(0);
	ck_assert_int_eq(to.clock_ahead_s, 0);
	answer_dated(100);
	(void)destination_handle_answer(&to, &a, false);
	ck_assert_int_ge(to.clock_ahead_s, 100);
	ck_assert_int_le(to.clock_ahead_s, 101);
	answer_dated(0);
	ck_assert_int_eq(to.clock_ahead_s, 0);
	answer_dated(-3600);
	ck_assert_int_ge(to.clock_ahead_s, -3601);
	ck_assert_int_le(to.clock_ahead_s, -3599);
	/* A new server has another clock. */
	destination_set_dsn(&to, NULL, 0, 0);
	ck_assert_int_eq(to.clock_ahead_s, 0);
}

TEST(a_date_in_retry_after_is_counted_from_the_date_of_the_answer)
{
	const struct transport_answer a = {
		.status = 429,
		.retry_after = "a date",
		.date_s = wall_s() + 48 * 3600,
		.retry_date_s = wall_s() + 48 * 3600 + 120,
	};

	ck_assert_int_eq(destination_handle_answer(&to, &a, false), OUTCOME_RATE_LIMITED);
	check_limit(ENVELOPE_CHUNK, 120);
}

TEST(a_slow_request_is_no_clock_difference)
{
	const struct transport_answer a = {.status = 200, .date_s = wall_s() - 10};

	to.request_start_s = a.date_s - 10;
	(void)destination_handle_answer(&to, &a, false);
	ck_assert_int_eq(to.clock_ahead_s, 0);
}
