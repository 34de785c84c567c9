#include "daemon/broker/state/degraded.h"

#include <string.h>

#include "lib/base/clock.h"
#include "tests/unit/daemon/log_capture.h"
#include "tests/unit/suite.h"

static struct degraded d;

static void set_up(void)
{
	d = (struct degraded){0};
}

FIXTURE(set_up, NULL)

TEST(each_change_of_a_state_is_a_line)
{
	const uint64_t before_ns = clock_mono_ns();
	uint64_t since_ns;

	log_capture_begin();
	degraded_end(&d, DEGRADED_SPOOL);
	degraded_begin(&d, DEGRADED_SPOOL, "%s is %s", "it", "away");
	degraded_begin(&d, DEGRADED_SPOOL, "it is away");
	ck_assert_uint_eq(log_capture_end("degraded"), 1);
	ck_assert_str_eq(d.v[DEGRADED_SPOOL].reason, "it is away");
	since_ns = d.v[DEGRADED_SPOOL].since_ns;
	ck_assert_uint_ge(since_ns, before_ns);

	log_capture_begin();
	degraded_begin(&d, DEGRADED_SPOOL, "it is full");
	ck_assert_uint_eq(log_capture_end("degraded: no spool, because it is full: chunks wait"),
			  1);
	ck_assert_uint_eq(d.v[DEGRADED_SPOOL].since_ns, since_ns);

	log_capture_begin();
	degraded_end(&d, DEGRADED_SPOOL);
	degraded_end(&d, DEGRADED_SPOOL);
	ck_assert_uint_eq(
		log_capture_end("no longer degraded: after 0 s this has ended: no spool\n"), 1);
	ck_assert_uint_eq(degraded_count(&d), 0);
}

TEST(a_state_needs_no_reason)
{
	log_capture_begin();
	degraded_begin(&d, DEGRADED_KILL, "%s", "");
	ck_assert_uint_eq(log_capture_end("degraded: no CAP_KILL: a process"), 1);
	ck_assert_uint_eq(degraded_count(&d), 1);
}

TEST(a_long_reason_is_cut_off)
{
	char text[2 * DEGRADED_REASON_MAX];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_capture_begin();
	degraded_begin(&d, DEGRADED_SPOOL, "%s", text);
	degraded_begin(&d, DEGRADED_SPOOL, "%s", text);
	ck_assert_uint_eq(log_capture_end("degraded"), 1);
	ck_assert_uint_eq(strlen(d.v[DEGRADED_SPOOL].reason), DEGRADED_REASON_MAX - 1);
}

TEST(the_gravest_state_is_the_first)
{
	ck_assert_int_eq(degraded_next(&d, 0), DEGRADED_N);
	log_capture_begin();
	degraded_begin(&d, DEGRADED_CLOCK, "%s", "");
	degraded_begin(&d, DEGRADED_SPOOL, "%s", "");
	ck_assert_uint_eq(log_capture_end("degraded"), 2);
	ck_assert_int_eq(degraded_next(&d, 0), DEGRADED_SPOOL);
	ck_assert_int_eq(degraded_next(&d, DEGRADED_SPOOL + 1), DEGRADED_CLOCK);
	ck_assert_int_eq(degraded_next(&d, DEGRADED_CLOCK + 1), DEGRADED_N);
	ck_assert_uint_eq(degraded_count(&d), 2);
}
