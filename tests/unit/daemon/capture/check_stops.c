/* Stops are waited for, and ticks are not late for that. */
#include "daemon/capture/stops.h"

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

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
	OK(loop_new(&loop));
	OK(stops_init(&s, loop, l.capture));
	await_enter();
	t = (struct ticker){.epoch_ns = clock_mono_ns(), .period_ns = PERIOD_NS};
}

static void tear_down(void)
{
	await_clear_timer(&s.await);
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

	live_say(&l, "vfork");
	live_until_state(&l, l.pid, 'D');
	/* Of stops that were taken before. */
	(void)sigtimedwait(&s.child_signal, NULL, &none);
	live_tick_running(&l, live_known(&l, l.pid));
	ck_assert_uint_eq(capture_pending(l.capture), 1);
}

static void end_vfork(void)
{
	ck_assert_int_eq(write(l.in, "!", 1), 1);
}

static void tick(void)
{
	t.tick = ticker_at(&t, clock_mono_ns());
	stops_tick(&s, &t);
}

/* So many as are enough, if stops are due after each, and as it is due now. */
static void ticks(void)
{
	for (int i = 0; i < 10; i++)
		tick();
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

	for (; capture_pending(l.capture) > 0; live_patience())
		(void)take();
	ck_assert_uint_eq(l.counters.captured, captured + 1);
	ck_assert(!s.behind);
	(void)live_answer(&l, "ok");
}

static void take_it(void)
{
	end_vfork();
	take_ended();
}

FIXTURE(set_up, tear_down)

/* That it is interrupted for a tick is seen by that it is not for ever. */
TEST(a_stop_that_does_not_come_delays_no_tick)
{
	interrupt();
	ticks();
	ck_assert(s.await.is_set);
	take_nothing();
	take_it();
	live_check_sum(&l);
}

TEST(before_that_has_lasted_for_some_ticks)
{
	ticks();
	interrupt();
	tick();
	ck_assert(!s.await.is_set);
	take_nothing();
	take_it();
	live_check_sum(&l);
}

/* Nothing is due any more. */
static void ring(void)
{
	interrupt();
	ticks();
	take_it();
	ck_assert(s.await.is_set);
}

/* Each signal stops the thread that it is for. */
static uint64_t send_signal(void)
{
	const uint64_t stops = l.counters.event_stops;

	OK(kill(l.pid, SIGWINCH));
	return stops + 1;
}

TEST(who_stops_between_ticks_is_taken_as_well)
{
	uint64_t stops;

	ring();
	stops = send_signal();
	for (; l.counters.event_stops < stops; live_patience())
		(void)take();
	ck_assert(s.await.is_set);
	live_check_sum(&l);
}

static void check_rests(void)
{
	uint64_t stops;

	ck_assert(!s.await.is_set);
	/* It hears of stops again. */
	stops = send_signal();
	while (l.counters.event_stops < stops)
		OK(loop_run_once(loop, -1));
}

TEST(after_a_tick_at_which_nobody_ran_it_rests)
{
	ring();
	tick();
	(void)take();
	check_rests();
}

TEST(up_to_a_tick_that_is_far_it_rests)
{
	uint64_t now_ns;

	ring();
	now_ns = clock_mono_ns();
	ck_assert(!stops_take(&s, now_ns, now_ns + 3 * PERIOD_NS));
	check_rests();
}

/* Of other children it does not ask. */
TEST(where_nobody_is_left_it_rests)
{
	const pid_t other = fork();

	while (other == 0)
		(void)pause();
	ck_assert_int_ge(other, 0);
	ring();
	OK(kill(l.child, SIGKILL));
	for (; capture_threads(l.capture) > 0; live_patience())
		(void)take();
	(void)take();
	ck_assert(!s.await.is_set);
	OK(kill(other, SIGKILL));
	ck_assert_int_eq(waitpid(other, NULL, 0), other);
}

/* It would be left at once each time, and nobody would hear of stops. */
TEST(where_nobody_can_be_waited_for_it_rests)
{
	int status;

	ring();
	OK(kill(l.child, SIGKILL));
	while (waitpid(l.child, &status, __WALL) > 0)
		if (WIFSTOPPED(status))
			(void)ptrace(PTRACE_CONT, l.child, NULL, NULL);
	ck_assert_uint_gt(capture_threads(l.capture), 0);
	for (; s.await.is_set; live_patience())
		(void)take();
	/* Nobody is left for the end of the test. */
	l.gone++;
}

/* The heart beats in between. */
TEST(slow_ticks_do_not_ring)
{
	t.period_ns = 200 * NS_PER_MS;
	interrupt();
	ticks();
	ck_assert(!s.await.is_set);
	take_it();
}

/* Nobody asks for all of them because one is told of: it is taken anyway. */
TEST(while_it_rings_the_wait_alone_takes_them)
{
	interrupt();
	ticks();
	end_vfork();
	live_until_state(NULL, l.pid, 't');
	OK(loop_run_once(loop, -1));
	ck_assert_uint_eq(capture_pending(l.capture), 1);
	take_ended();
	live_check_sum(&l);
}

/* Messages have their turn at a tick now and then, not at each. */
TEST(while_it_rings_the_loop_is_spared_for_a_few_ticks)
{
	const uint64_t past_ns = clock_mono_ns();
	uint64_t until_ns;

	/* What else would take the tick? */
	ck_assert(!stops_spare_loop(&s, past_ns));
	ring();
	ck_assert(!stops_spare_loop(&s, UINT64_MAX));
	s.behind = true;
	ck_assert(!stops_spare_loop(&s, past_ns));
	s.behind = false;
	until_ns = clock_mono_ns() + NS_PER_SEC;
	s.events_ns = until_ns;
	while (stops_spare_loop(&s, past_ns))
		live_patience();
	ck_assert_uint_ge(clock_mono_ns(), until_ns);
	ck_assert_uint_le(s.events_ns, clock_mono_ns() + 50 * NS_PER_MS);
}

/* To wait for any of them takes longer than to ask for one. */
TEST(many_threads_do_not_ring)
{
	(void)live_ask(&l, "asleep 150", "ok");
	live_ticks(&l, 2);
	interrupt();
	ticks();
	ck_assert(!s.await.is_set);
	take_it();
}
