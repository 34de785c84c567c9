/*
 * lib/capture/rest.h with waits, and waits.c: how long they take under signals
 * that are ignored. Each would last an hour; what capture takes for the time is
 * the test's.
 */
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/capture/target.h"
#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

#define HOUR_NS	  (3600 * NS_PER_SEC)
#define MINUTE_NS (60 * NS_PER_SEC)

static struct live l;

static void tear_down(void)
{
	live_end(&l);
}

static long count(const char *word)
{
	return live_ask(&l, word, word);
}

/* Relative timeouts that begin anew when the call is run again. */
static const char *const kinds[] = {
	"epoll_wait",	   "epoll_pwait",	"epoll_pwait2",
	"ppoll_read_only", "pselect_read_only", "sigtimedwait",
	"semtimedop",	   "io_getevents",	"io_pgetevents",
	"io_uring_enter",
};

/* These only under a filter. */
static const char *const filtered_kinds[] = {"poll", "nanosleep",
					     "clock_nanosleep", "futex"};

/* Its call goes on, and is watched. */
static void until_inside(uint64_t rewritten)
{
	while (l.counters.rewritten <= rewritten)
		live_wait(&l);
	live_until_blocked(l.first);
}

/* A signal that an untraced thread would not notice. */
static void disturb(void)
{
	const uint64_t rewritten = l.counters.rewritten;

	ck_assert_int_eq(syscall(SYS_tgkill, l.pid, l.first, SIGWINCH), 0);
	until_inside(rewritten);
	/* Into the call again: a stop without a signal. */
	live_reap(&l);
	while (live_state(l.first) != 'S') {
		live_reap(&l);
		live_patience();
	}
}

static void begin(const char *call, bool filter)
{
	live_begin(&l, "cap_waits", call, NULL);
	if (filter)
		(void)live_ask(&l, "filter", "ok");
	live_until_blocked(l.first);
}

static void still_waits(void)
{
	live_tick(&l);
	live_settle(&l);
	disturb();
	ck_assert_int_eq(count("other"), 0);
	ck_assert_int_eq(count("eintr"), 0);
}

/* As it does when its time is over. */
static void has_ended(void)
{
	while (count("right") == 0)
		live_patience();
	ck_assert_int_eq(count("right"), 1);
	ck_assert_int_eq(count("wrong"), 0);
	ck_assert_int_eq(count("eintr"), 0);
	/* And it waits again, for an hour. */
	live_until_blocked(l.first);
	live_later(HOUR_NS - MINUTE_NS);
	live_tick(&l);
	live_settle(&l);
	ck_assert_int_eq(count("other"), 1);
}

static void storm(void)
{
	for (int i = 0; i < 11; i++) {
		disturb();
		live_later(HOUR_NS / 12);
		still_waits();
	}
}

START_TEST(signals_do_not_make_it_longer)
{
	begin(kinds[_i], false);
	storm();
	live_later(HOUR_NS / 12);
	live_tick(&l);
	has_ended();
}
END_TEST

START_TEST(nor_under_a_filter)
{
	begin(filtered_kinds[_i], true);
	storm();
	live_later(HOUR_NS / 12);
	live_tick(&l);
	has_ended();
}
END_TEST

/* If ticks are rare, by the next signal. */
START_TEST(it_ends_by_a_signal)
{
	begin(kinds[_i], false);
	disturb();
	live_later(HOUR_NS);
	ck_assert_int_eq(syscall(SYS_tgkill, l.pid, l.first, SIGWINCH), 0);
	has_ended();
}
END_TEST

/* It was seen to wait long before the first signal. */
START_TEST(it_began_when_it_was_seen_first)
{
	begin(kinds[_i], false);
	live_ticks(&l, 2);
	live_later(HOUR_NS - MINUTE_NS);
	still_waits();
	live_later(MINUTE_NS);
	live_tick(&l);
	has_ended();
}
END_TEST

/* An interrupt of ours in the middle of it is none for the target. */
START_TEST(interrupts_in_between)
{
	begin(kinds[_i], false);
	disturb();
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(ptrace(PTRACE_INTERRUPT, l.first, NULL, NULL),
				 0);
		live_wait(&l);
		still_waits();
	}
	live_later(HOUR_NS);
	live_tick(&l);
	has_ended();
}
END_TEST

/* What happens ends it, and the next wait is another one. */
START_TEST(events_in_between)
{
	begin("epoll_woken_timed", false);
	disturb();
	live_later(HOUR_NS - MINUTE_NS);
	still_waits();
	ck_assert_int_eq(live_ask(&l, "wake", "ok"), 0);
	has_ended();
}
END_TEST

/* A handler ends it, as without us. */
START_TEST(a_handler_in_between)
{
	begin("epoll_wait", false);
	for (int i = 1; i <= 30; i++) {
		live_until_blocked(l.first);
		ck_assert_int_eq(syscall(SYS_tgkill, l.pid, l.first, SIGWINCH),
				 0);
		if (i % 2 == 0)
			live_reap(&l);
		ck_assert_int_eq(syscall(SYS_tgkill, l.pid, l.first, SIGALRM),
				 0);
		while (count("eintr") < i)
			live_patience();
	}
	ck_assert_int_eq(count("eintr"), 30);
	ck_assert_int_eq(count("other"), 0);
}
END_TEST

/* As without us: SIGSTOP and SIGCONT end an epoll_wait(2). */
START_TEST(the_process_is_stopped_in_between)
{
	begin("epoll_wait", false);
	disturb();
	ck_assert_int_eq(kill(l.pid, SIGSTOP), 0);
	/* Not only about to be: SIGCONT takes back a stop on its way. */
	while (!capture_thread(l.capture, (uint32_t)l.first)->listening) {
		live_reap(&l);
		live_patience();
	}
	ck_assert_int_eq(kill(l.pid, SIGCONT), 0);
	while (count("eintr") == 0)
		live_patience();
	ck_assert_int_eq(count("eintr"), 1);
	ck_assert_int_eq(count("other"), 0);
}
END_TEST

/* Nothing is lost if we leave, so nobody waits for it. */
START_TEST(it_does_not_hold_us_up)
{
	begin("epoll_wait", false);
	disturb();
	ck_assert(capture_settle(l.capture));
}
END_TEST

START_TEST(it_is_killed_in_between)
{
	begin("epoll_wait", false);
	disturb();
	ck_assert_int_eq(kill(l.pid, SIGKILL), 0);
	while (l.gone == 0)
		live_wait(&l);
	live_later(HOUR_NS);
	live_tick(&l);
}
END_TEST

Suite *suite(void)
{
	const int n = sizeof(kinds) / sizeof(kinds[0]);
	Suite *s = suite_create("waits");
	TCase *tc = tcase_create("length");

	tcase_set_timeout(tc, LIVE_TIMEOUT_S);
	tcase_add_checked_fixture(tc, NULL, tear_down);
	tcase_add_loop_test(tc, signals_do_not_make_it_longer, 0, n);
	tcase_add_loop_test(tc, nor_under_a_filter, 0,
			    sizeof(filtered_kinds) / sizeof(filtered_kinds[0]));
	tcase_add_loop_test(tc, it_ends_by_a_signal, 0, n);
	tcase_add_loop_test(tc, it_began_when_it_was_seen_first, 0, n);
	tcase_add_loop_test(tc, interrupts_in_between, 0, n);
	suite_add_tcase(s, tc);
	tc = tcase_create("ends");
	tcase_set_timeout(tc, LIVE_TIMEOUT_S);
	tcase_add_checked_fixture(tc, NULL, tear_down);
	tcase_add_test(tc, events_in_between);
	tcase_add_test(tc, a_handler_in_between);
	tcase_add_test(tc, the_process_is_stopped_in_between);
	tcase_add_test(tc, it_does_not_hold_us_up);
	tcase_add_test(tc, it_is_killed_in_between);
	suite_add_tcase(s, tc);
	return s;
}
