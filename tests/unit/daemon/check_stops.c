/* Stops are waited for, and ticks are not late for that. */
#include "daemon/stops.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/capture/target.h"
#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

#define PERIOD_NS NS_PER_MS

static struct live l;
static struct loop *loop;
static struct stops s;
static struct ticker t;

static void set_up(void)
{
	live_begin(&l, "cap_threads", NULL, NULL);
	live_ticks(&l, 2);
	ck_assert_int_eq(loop_new(&loop), 0);
	ck_assert_int_eq(stops_init(&s, loop, l.capture), 0);
	await_enter();
	t = (struct ticker){.epoch_ns = clock_mono_ns(),
			    .period_ns = PERIOD_NS};
}

static void tear_down(void)
{
	await_fini(&s.await);
	loop_free(loop);
	live_end(&l);
}

/*
 * Interrupts a thread as if it were running that is in vfork(2): it stops when
 * its child has ended, not before.
 */
static void interrupt(void)
{
	struct timespec none = {.tv_sec = 0};
	struct thread *th;
	int was;

	live_say(&l, "vfork");
	live_until_state(&l, l.pid, 'D');
	/* Of stops that were taken before. */
	(void)sigtimedwait(&s.child_signal, NULL, &none);
	th = live_known(&l, l.pid);
	was = th->activity.syscall_fd;
	th->activity.syscall_fd = memfd_create("syscall", MFD_CLOEXEC);
	ck_assert_int_eq(write(th->activity.syscall_fd, "running\n", 8), 8);
	thread_wake(th);
	live_tick(&l);
	close_fd(&th->activity.syscall_fd);
	th->activity.syscall_fd = was;
	ck_assert_uint_eq(capture_pending(l.capture), 1);
}

static void end_vfork(void)
{
	ck_assert_int_eq(write(l.in, "!", 1), 1);
}

/* A tick: what is behind it is of no interest. */
static void tick(void)
{
	t.tick = ticker_at(&t, clock_mono_ns());
	stops_tick(&s, &t);
}

/* Until the next tick, at the latest. Returns when that is. */
static uint64_t take(void)
{
	const uint64_t now_ns = clock_mono_ns();
	const uint64_t next_ns = ticker_time(&t, ticker_at(&t, now_ns) + 1);

	(void)!stops_take(&s, now_ns, next_ns);
	return next_ns;
}

static void take_nothing(void)
{
	for (int i = 0; i < 20; i++)
		ck_assert_uint_le(take(), clock_mono_ns());
	ck_assert_uint_eq(capture_pending(l.capture), 1);
}

static void take_ended(void)
{
	const uint64_t captured = l.counters.captured;

	while (capture_pending(l.capture) > 0) {
		(void)take();
		live_patience();
	}
	ck_assert_uint_eq(l.counters.captured, captured + 1);
	ck_assert(!s.behind);
	(void)live_answer(&l, "ok");
}

static void take_it(void)
{
	end_vfork();
	take_ended();
}

/* That it is interrupted for a tick is seen by that it is not for ever. */
START_TEST(a_stop_that_does_not_come_delays_no_tick)
{
	interrupt();
	tick();
	ck_assert(s.await.rings);
	take_nothing();
	take_it();
	/* And as long as nobody is on the way to one nothing rings. */
	ck_assert(!stops_take(&s, 0, UINT64_MAX));
	ck_assert(!s.await.rings);
	live_check_sum(&l);
}
END_TEST

START_TEST(before_that_has_lasted_for_a_tick)
{
	tick();
	interrupt();
	ck_assert(!s.await.rings);
	take_nothing();
	take_it();
	live_check_sum(&l);
}
END_TEST

/* The heart beats in between. */
START_TEST(slow_ticks_do_not_ring)
{
	t.period_ns = 200 * NS_PER_MS;
	interrupt();
	tick();
	ck_assert(!s.await.rings);
	take_it();
}
END_TEST

/* Nobody asks for all of them because one is told of: it is taken anyway. */
START_TEST(while_it_rings_the_wait_alone_takes_them)
{
	interrupt();
	tick();
	end_vfork();
	live_until_state(NULL, l.pid, 't');
	ck_assert_int_eq(loop_run_once(loop, -1), 0);
	ck_assert_uint_eq(capture_pending(l.capture), 1);
	take_ended();
	live_check_sum(&l);
}
END_TEST

/* To wait for any of them takes longer than to ask for one. */
START_TEST(many_threads_do_not_ring)
{
	(void)live_ask(&l, "asleep 150", "ok");
	live_ticks(&l, 2);
	interrupt();
	tick();
	ck_assert(!s.await.rings);
	take_it();
}
END_TEST

Suite *suite(void)
{
	Suite *suite = suite_create("stops");
	TCase *tc = tcase_create("stops");

	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, a_stop_that_does_not_come_delays_no_tick);
	tcase_add_test(tc, before_that_has_lasted_for_a_tick);
	tcase_add_test(tc, while_it_rings_the_wait_alone_takes_them);
	tcase_add_test(tc, slow_ticks_do_not_ring);
	tcase_add_test(tc, many_threads_do_not_ring);
	suite_add_tcase(suite, tc);
	return suite;
}
