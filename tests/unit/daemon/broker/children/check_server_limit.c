/* Whether the profiler samples while a server takes no profiles. */
#include "daemon/broker/children/server_limit.h"

#include "lib/base/clock.h"
#include "proto/rate_limit.h"
#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/daemon/log_capture.h"
#include "tests/unit/daemon/suspended.h"
#include "tests/unit/suite.h"

static struct broker b;
static struct ship ships[2];

static void set_up(void)
{
	build_broker(&b);
	for (size_t i = 0; i < 2; i++)
		build_ship(&b, &ships[i]);
}

/* CLOCK_BOOTTIME, which advances while the machine sleeps. */
static uint64_t in_s(int64_t seconds)
{
	return clock_read_ns(CLOCK_BOOTTIME) + (uint64_t)(seconds * (int64_t)NS_PER_SEC);
}

FIXTURE(set_up, NULL)

TEST(a_limit_stops_sampling_for_its_dsn_only)
{
	OK(server_limit_set(&ships[0], in_s(3600), false));
	server_limit_check(&b.modules.children, false);
	ck_assert(server_limit_stops_sampling(&ships[0]) &&
		  !server_limit_stops_sampling(&ships[1]));
	ck_assert_uint_eq(ships[0].limit.holds, 1);
	/* The server may lift a limit early. */
	OK(server_limit_set(&ships[0], in_s(0), false));
	server_limit_check(&b.modules.children, false);
	ck_assert(!server_limit_stops_sampling(&ships[0]));
	ck_assert_uint_eq(ships[0].limit.holds, 1);
}

/* Limits as a ship that was taken over sends them: each one begins a hold and ends it. */
TEST(holds_in_a_row_last)
{
	for (int i = 0; i < 100; i++) {
		OK(server_limit_set(&ships[0], in_s(3600), false));
		server_limit_check(&b.modules.children, false);
		OK(server_limit_set(&ships[0], 0, false));
		server_limit_check(&b.modules.children, false);
	}
	ck_assert(server_limit_stops_sampling(&ships[0]));
	ck_assert_uint_le(ships[0].limit.holds, 10);
	/* After the time for each of them the hold ends. */
	ships[0].limit.full_ns = 0;
	server_limit_check(&b.modules.children, false);
	ck_assert(!server_limit_stops_sampling(&ships[0]));
}

TEST(a_refusal_stops_sampling_until_it_ends)
{
	struct msg_denied m = {.status = 403, .text = "no such key"};

	log_capture_begin();
	OK(server_limit_deny(&ships[0], &m, false));
	OK(server_limit_deny(&ships[0], &m, false));
	memcpy(m.text, "other", sizeof("other"));
	OK(server_limit_deny(&ships[0], &m, false));
	ck_assert_uint_eq(log_capture_end("refuses the DSN with status 403, "), 2);
	server_limit_check(&b.modules.children, false);
	ck_assert(server_limit_stops_sampling(&ships[0]) &&
		  !server_limit_stops_sampling(&ships[1]));
	m = (struct msg_denied){.status = 0};
	OK(server_limit_deny(&ships[0], &m, false));
	server_limit_check(&b.modules.children, false);
	ck_assert(!server_limit_stops_sampling(&ships[0]));
	memset(m.text, 'x', sizeof(m.text));
	ck_assert_int_eq(server_limit_deny(&ships[0], &m, false), -EPROTO);
}

TEST(a_limit_does_not_stop_sampling_for_files)
{
	OK(server_limit_set(&ships[0], in_s(3600), true));
	server_limit_check(&b.modules.children, true);
	ck_assert(!server_limit_stops_sampling(&ships[0]));
}

static void check_clock(void)
{
	OK(server_limit_set(&ships[0], in_s(-1), false));
	OK(server_limit_set(&ships[1], in_s(RATE_LIMIT_MAX_S), false));
	server_limit_check(&b.modules.children, false);
	ck_assert(!server_limit_stops_sampling(&ships[0]) &&
		  server_limit_stops_sampling(&ships[1]));
	ck_assert_int_eq(server_limit_set(&ships[0], in_s(RATE_LIMIT_MAX_S + 60), false), -EPROTO);
}

TEST(a_suspend_counts_as_time_of_the_limit)
{
	check_clock();
	set_up();
	suspended_run(check_clock);
}
