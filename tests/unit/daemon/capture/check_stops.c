/* Waiting for stops does not make ticks late. */
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
static struct heartbeat_polls polls;
static struct ticker t;

static void set_up(void)
{
	live_begin(&l, "cap_threads", NULL, NULL);
	live_ticks(&l, 2);
	OK(loop_new(&loop));
	polls = (struct heartbeat_polls){0};
	OK(stops_init(&s, loop, l.capture, &polls));
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
 * Interrupts the main thread, which is in vfork(2), as if it were running. The thread stops when
 * its child has ended, and not before.
 */
static void interrupt(void)
{
	struct timespec none = {.tv_sec = 0};

	live_say(&l, "vfork");
	live_until_state(&l, l.pid, 'D');
	/* Drops the signal of stops that were handled before. */
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

/* Gives more ticks than are needed before the timer is set, if stops are due after each of them. */
static void ticks(void)
{
	for (int i = 0; i < 10; i++)
		tick();
}

/* Handles stops until the next tick. Returns the time of that tick. */
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

/* The wait for the stop ends at each tick. */
TEST(a_missing_stop_delays_no_tick)
{
	interrupt();
	ticks();
	ck_assert(s.await.is_set);
	take_nothing();
	take_it();
	live_check_sum(&l);
}

TEST(after_a_poll_without_a_stop_the_next_tick_is_not_polled_for)
{
	interrupt();
	ticks();
	ck_assert(s.polls_next);
	(void)take();
	ck_assert_uint_eq(s.polling.pause, 1);
	ck_assert_uint_eq(polls.useful, 0);
	ck_assert_uint_eq(polls.useless, 1);
	tick();
	ck_assert(!s.polls_next);
	tick();
	ck_assert(s.polls_next);
	take_it();
	live_check_sum(&l);
}

TEST(a_poll_takes_the_stops_that_come)
{
	interrupt();
	ticks();
	(void)take();
	tick();
	tick();
	end_vfork();
	live_until_state(NULL, l.pid, 't');
	ck_assert(s.polls_next);
	take_ended();
	ck_assert(!s.polls_next);
	ck_assert_uint_eq(s.polling.pause, 0);
	ck_assert_uint_eq(polls.useful, 1);
	ck_assert_uint_eq(polls.useless, 1);
	live_check_sum(&l);
}

TEST(the_timer_is_not_set_before_some_ticks_with_due_stops)
{
	ticks();
	interrupt();
	tick();
	ck_assert(!s.await.is_set);
	take_nothing();
	take_it();
	live_check_sum(&l);
}

/* Leaves the timer set, with no stop due. */
static void set_timer(void)
{
	interrupt();
	ticks();
	take_it();
	ck_assert(s.await.is_set);
}

/* Sends a signal, which stops its thread. Returns the number of event stops after that. */
static uint64_t send_signal(void)
{
	const uint64_t stops = l.counters.event_stops;

	OK(kill(l.pid, SIGWINCH));
	return stops + 1;
}

TEST(stops_for_signals_are_handled_while_the_timer_is_set)
{
	uint64_t stops;

	set_timer();
	stops = send_signal();
	for (; l.counters.event_stops < stops; live_patience())
		(void)take();
	ck_assert(s.await.is_set);
	live_check_sum(&l);
}

static void check_timer_is_cleared(void)
{
	uint64_t stops;

	ck_assert(!s.await.is_set);
	/* The event loop handles stops again. */
	stops = send_signal();
	while (l.counters.event_stops < stops)
		OK(loop_run_once(loop, -1));
}

TEST(the_timer_is_cleared_after_a_tick_without_interrupts)
{
	set_timer();
	tick();
	(void)take();
	check_timer_is_cleared();
}

TEST(the_timer_is_cleared_if_the_next_tick_is_far)
{
	uint64_t now_ns;

	set_timer();
	now_ns = clock_mono_ns();
	ck_assert(!stops_take(&s, now_ns, now_ns + 3 * PERIOD_NS));
	check_timer_is_cleared();
}

/* A child that is not traced does not keep the timer set. */
TEST(the_timer_is_cleared_when_no_thread_is_left)
{
	const pid_t other = fork();

	while (other == 0)
		(void)pause();
	ck_assert_int_ge(other, 0);
	set_timer();
	OK(kill(l.child, SIGKILL));
	for (; capture_threads(l.capture) > 0; live_patience())
		(void)take();
	(void)take();
	ck_assert(!s.await.is_set);
	OK(kill(other, SIGKILL));
	ck_assert_int_eq(waitpid(other, NULL, 0), other);
}

/* Otherwise each wait would end at once, and no stop would be handled. */
TEST(the_timer_is_cleared_when_there_are_no_tracees)
{
	int status;

	set_timer();
	OK(kill(l.child, SIGKILL));
	while (waitpid(l.child, &status, __WALL) > 0)
		if (WIFSTOPPED(status))
			(void)ptrace(PTRACE_CONT, l.child, NULL, NULL);
	ck_assert_uint_gt(capture_threads(l.capture), 0);
	for (; s.await.is_set; live_patience())
		(void)take();
	/* The test has reaped the target itself. */
	l.gone++;
}

/* With slow ticks the heartbeat has to be renewed between two ticks. */
TEST(the_timer_is_not_set_for_slow_ticks)
{
	t.period_ns = 200 * NS_PER_MS;
	interrupt();
	ticks();
	ck_assert(!s.await.is_set);
	take_it();
}

/* SIGCHLD does not make the loop call waitpid(2), since the wait by await.h handles the stop. */
TEST(while_the_timer_is_set_the_loop_handles_no_stops)
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

/* Messages are handled every few ticks, and not at each. */
TEST(while_the_timer_is_set_the_loop_runs_every_few_ticks)
{
	const uint64_t past_ns = clock_mono_ns();
	uint64_t until_ns;

	/* Without the timer of await.h the loop must run. */
	ck_assert(!stops_spare_loop(&s, past_ns));
	set_timer();
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

/* With many threads waitpid(-1) takes longer than waitpid(2) for one thread. */
TEST(the_timer_is_not_set_for_many_threads)
{
	(void)live_ask(&l, "asleep 150", "ok");
	live_ticks(&l, 2);
	interrupt();
	ticks();
	ck_assert(!s.await.is_set);
	take_it();
}
