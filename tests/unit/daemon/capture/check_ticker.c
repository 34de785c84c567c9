/* The ticks and their timer. The time to which the timer is set is read from the kernel. */
#include "daemon/capture/ticker.h"

#include <errno.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "tests/unit/suite.h"

/* A period that is longer than any test, and one that is over at once. */
#define LONG_NS	 (10000 * NS_PER_SEC)
#define SHORT_NS (1 * NS_PER_MS)

static struct loop *loop;
static struct ticker t;
static uint64_t last_tick; /* the last tick that was taken */
static bool passes;	   /* ticks are taken by ticker_pass(), which does not read the timer */

static void set_up(void)
{
	t = (struct ticker){0};
	last_tick = 0;
	passes = false;
	OK(loop_new(&loop));
}

static void tear_down(void)
{
	ticker_stop(&t, loop);
	loop_free(loop);
}

static void on_tick(void *ctx)
{
	(void)ctx;
	if (passes ? ticker_pass(&t, clock_mono_ns()) : ticker_take(&t, clock_mono_ns()))
		last_tick = t.tick;
}

/* Starts the ticker with the long period, at tick 0. */
static void start_long(void)
{
	OK(ticker_start(&t, loop, clock_mono_ns(), LONG_NS, on_tick));
	ck_assert_uint_eq(t.tick, 0);
}

/* Checks that the timer expires at this tick, and only once. */
static void check_set(uint64_t tick)
{
	struct itimerspec is;
	uint64_t left_ns, n;

	/* The timer has not expired. */
	ck_assert_int_lt(read(t.fd, &n, sizeof(n)), 0);
	OK(timerfd_gettime(t.fd, &is));
	left_ns = (uint64_t)is.it_value.tv_sec * NS_PER_SEC + (uint64_t)is.it_value.tv_nsec;
	ck_assert_uint_eq(ticker_at(&t, clock_mono_ns() + left_ns + LONG_NS / 4), tick);
	ck_assert_int_eq(is.it_interval.tv_sec, 0);
	ck_assert_int_eq(is.it_interval.tv_nsec, 0);
	ck_assert_uint_eq(ticker_next(&t), tick);
}

FIXTURE(set_up, tear_down)

TEST(the_timer_is_set_to_the_next_tick_at_first)
{
	start_long();
	check_set(1);
}

TEST(the_timer_can_be_set_to_a_later_or_earlier_tick)
{
	start_long();
	OK(ticker_set_timer(&t, 5));
	check_set(5);
	/* To an earlier tick. */
	OK(ticker_set_timer(&t, 2));
	check_set(2);
	/* To a tick that is over: the next one is taken. */
	OK(ticker_set_timer(&t, 0));
	check_set(1);
}

/* Setting the timer does not change the numbers of ticks, and no tick comes before its time. */
TEST(tick_numbers_go_on_and_no_tick_is_early)
{
	const uint64_t epoch_ns = clock_mono_ns() - 100 * SHORT_NS;
	uint64_t before;

	OK(ticker_start(&t, loop, epoch_ns, SHORT_NS, on_tick));
	ck_assert_uint_ge(t.tick, 99);
	for (int i = 0; i < 5; i++) {
		before = t.tick;
		OK(ticker_set_timer(&t, before + 20));
		while (last_tick <= before)
			OK(loop_run_once(loop, -1));
		ck_assert_uint_ge(last_tick, before + 20);
		ck_assert_uint_eq(ticker_next(&t), last_tick + 1);
	}
}

static void event(void *ctx, uint32_t target, enum capture_event what)
{
	(void)ctx;
	(void)target;
	(void)what;
}

/* Returns a capture without targets. */
static struct capture *new_capture(void)
{
	static struct capture_beat beat;
	const struct capture_options options = {
		.now_ns = clock_mono_ns, .beat = &beat, .event = event};
	struct capture *capture;

	OK(capture_new(&options, &capture));
	return capture;
}

/* The timer is not read, so the loop calls the handler in each round. */
TEST(ticker_plan_does_nothing_while_the_timer_is_unread)
{
	struct pollfd ready = {.events = POLLIN};
	struct capture *capture = new_capture();
	uint64_t before;

	passes = true;
	OK(ticker_start(&t, loop, clock_mono_ns(), SHORT_NS, on_tick));
	ready.fd = t.fd;
	while (last_tick < 10) {
		OK(loop_run_once(loop, -1));
		OK(ticker_plan(&t, capture));
	}
	ck_assert_int_eq(poll(&ready, 1, 0), 1);
	/* From here on the timer is read. */
	passes = false;
	for (int i = 0; i < 5; i++) {
		before = last_tick;
		while (last_tick == before) {
			OK(loop_run_once(loop, -1));
			OK(ticker_plan(&t, capture));
		}
	}
	capture_free(capture);
}

TEST(without_targets_the_timer_is_set_to_the_next_tick)
{
	struct capture *capture = new_capture();

	OK(ticker_plan(&t, capture));
	start_long();
	OK(ticker_set_timer(&t, 20));
	OK(ticker_plan(&t, capture));
	check_set(1);
	capture_free(capture);
}

TEST(times_and_numbers_agree)
{
	t = (struct ticker){.epoch_ns = 77 * NS_PER_SEC, .period_ns = 10 * NS_PER_MS};
	ck_assert_uint_eq(ticker_at(&t, 0), 0);
	ck_assert_uint_eq(ticker_at(&t, t.epoch_ns), 0);
	ck_assert_uint_eq(ticker_time(&t, 0), t.epoch_ns);
	for (uint64_t tick = 1; tick < 1000; tick++) {
		const uint64_t time_ns = ticker_time(&t, tick);

		ck_assert_uint_ge(time_ns - ticker_time(&t, tick - 1), t.period_ns / 16);
		ck_assert_uint_eq(ticker_at(&t, time_ns - 1), tick - 1);
		ck_assert_uint_eq(ticker_at(&t, time_ns), tick);
	}
	/* There is one tick in each period. */
	ck_assert_uint_eq(ticker_at(&t, ticker_time(&t, 6400)), 6400);
	ck_assert_uint_le(ticker_time(&t, 6400), t.epoch_ns + 6401 * t.period_ns);
}

/* The place of a tick in its period is random, and independent of that of the tick before. */
TEST(a_tick_is_anywhere_in_its_period)
{
	const uint64_t n = 100000;
	uint64_t places[16] = {0}, both[2][2] = {{0}};
	bool late = false;

	t = (struct ticker){.epoch_ns = 77 * NS_PER_SEC, .period_ns = 16 * NS_PER_MS};
	for (t.tick = 1; t.tick <= n; t.tick++) {
		const struct tick tick = ticker_now(&t);
		const bool was_late = late;
		uint64_t in_ns;

		ck_assert_uint_eq(tick.number, t.tick);
		ck_assert_uint_eq(tick.period_ns, t.period_ns);
		ck_assert_uint_eq(tick.begin_ns, t.epoch_ns + t.tick * t.period_ns);
		ck_assert_uint_eq(tick.due_ns, ticker_time(&t, t.tick));
		in_ns = tick.due_ns - tick.begin_ns;
		ck_assert_uint_lt(in_ns, t.period_ns);
		places[in_ns / NS_PER_MS]++;
		late = in_ns > 15 * NS_PER_MS / 2;
		both[was_late][late]++;
	}
	ck_assert_uint_eq(places[15], 0);
	for (size_t i = 0; i < 15; i++)
		ck_assert_double_eq_tol((double)places[i], (double)n / 15, 0.1 * (double)n / 15);
	for (size_t i = 0; i < 4; i++)
		ck_assert_double_eq_tol((double)both[i / 2][i % 2], (double)n / 4,
					0.05 * (double)n / 4);
}

/* With periods of a second the ticks are exactly a second apart. */
TEST(slow_ticks_keep_their_period)
{
	t = (struct ticker){.epoch_ns = 77 * NS_PER_SEC, .period_ns = NS_PER_SEC};
	for (uint64_t tick = 0; tick < 1000; tick++)
		ck_assert_uint_eq(ticker_time(&t, tick), t.epoch_ns + tick * NS_PER_SEC);
}

TEST(another_clock_is_refused)
{
	start_long();
	OK(ticker_start(&t, loop, t.epoch_ns, LONG_NS, on_tick));
	ck_assert_int_eq(ticker_start(&t, loop, t.epoch_ns + 1, LONG_NS, on_tick), -EPROTO);
	ck_assert_int_eq(ticker_start(&t, loop, t.epoch_ns, LONG_NS + 1, on_tick), -EPROTO);
	ticker_stop(&t, loop);
	ck_assert_int_eq(ticker_start(&t, loop, t.epoch_ns, 0, on_tick), -EPROTO);
	start_long();
	check_set(1);
}
