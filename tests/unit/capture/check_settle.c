#include "lib/capture/target.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

static struct live l;

static void set_up(void)
{
	live_begin(&l, "cap_threads", NULL, NULL);
	live_until_blocked(&l, l.pid);
	live_ticks(&l, 3);
}

static void tear_down(void)
{
	live_end(&l);
}

START_TEST(who_sleeps_keeps_nobody)
{
	ck_assert(capture_settle(l.capture));
}
END_TEST

/* Its call comes back because of us: it is to be mended before we leave. */
START_TEST(a_stop_without_a_sample_is_waited_for)
{
	struct thread *th = live_known(&l, l.pid);

	ck_assert_int_eq(ptrace(PTRACE_INTERRUPT, th->tid, NULL, NULL), 0);
	th->stop_expected = true;
	ck_assert(!capture_settle(l.capture));
	while (th->stop_expected)
		live_wait(&l);
	ck_assert(capture_settle(l.capture));
}
END_TEST

/* So much later: what is cut off then is not waited for at the next look. */
static bool is_settled_later(uint64_t seconds)
{
	live_later(seconds * NS_PER_SEC);
	(void)!capture_settle(l.capture);
	return capture_settle(l.capture);
}

/* Who is in a sleep that nothing ends is left. */
START_TEST(but_not_for_ever)
{
	live_known(&l, l.pid)->stop_expected = true;
	ck_assert(!capture_settle(l.capture));
	ck_assert(!is_settled_later(1));
	ck_assert(is_settled_later(1));
}
END_TEST

/* Its processor may be one that many share, so that it takes its time. */
START_TEST(who_moves_is_waited_for_longer)
{
	pid_t tid = (pid_t)live_ask(&l, "busy 1", "ok");

	live_ticks(&l, 1);
	live_known(&l, tid)->stop_expected = true;
	ck_assert(!capture_settle(l.capture));
	ck_assert(!is_settled_later(8));
	ck_assert(is_settled_later(8));
}
END_TEST

static void put_into_wait(enum rest_state state, long nr)
{
	struct rest *r = &live_known(&l, l.pid)->rest;

	r->state = state;
	r->whole = true;
	r->partial.nr = nr;
}

/* The kernel would let go of it as if by a signal: for a moment only. */
START_TEST(who_is_ahead_of_a_call_is_waited_for)
{
	put_into_wait(REST_AHEAD, SYS_ppoll);
	ck_assert(!capture_settle(l.capture));
	ck_assert(!is_settled_later(2));
	put_into_wait(REST_INSIDE, SYS_ppoll);
	ck_assert(capture_settle(l.capture));
}
END_TEST

/* Its timeout would be EALREADY. */
START_TEST(a_connection_is_waited_for)
{
	put_into_wait(REST_INSIDE, SYS_connect);
	ck_assert(!capture_settle(l.capture));
	ck_assert(is_settled_later(2));
}
END_TEST

/* Its call would come back with the last part alone: it is interrupted. */
START_TEST(a_rest_is_cut_off)
{
	struct thread *th = live_known(&l, l.pid);
	const uint64_t stops = l.counters.event_stops;

	put_into_wait(REST_INSIDE, SYS_write);
	th->rest.whole = false;
	ck_assert(!capture_settle(l.capture));
	ck_assert(!is_settled_later(1));
	ck_assert_int_eq(live_state(l.pid), 'S');
	ck_assert(!is_settled_later(1));
	th->rest.state = REST_NONE;
	while (l.counters.event_stops == stops)
		live_wait(&l);
	ck_assert(capture_settle(l.capture));
}
END_TEST

/* It never stops. */
START_TEST(is_given_up_in_the_end)
{
	uint64_t seconds = 0;

	put_into_wait(REST_AHEAD, SYS_write);
	while (!capture_settle(l.capture) && seconds++ < 100)
		live_later(NS_PER_SEC);
	ck_assert_uint_ge(seconds, 4);
	ck_assert_uint_le(seconds, 20);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("settle");
	TCase *tc = tcase_create("settle");

	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, who_sleeps_keeps_nobody);
	tcase_add_test(tc, a_stop_without_a_sample_is_waited_for);
	tcase_add_test(tc, but_not_for_ever);
	tcase_add_test(tc, who_is_ahead_of_a_call_is_waited_for);
	tcase_add_test(tc, who_moves_is_waited_for_longer);
	tcase_add_test(tc, a_connection_is_waited_for);
	tcase_add_test(tc, a_rest_is_cut_off);
	tcase_add_test(tc, is_given_up_in_the_end);
	suite_add_tcase(s, tc);
	return s;
}
