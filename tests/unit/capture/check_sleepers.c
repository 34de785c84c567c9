#include "lib/capture/target.h"

#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

#define SLEEPERS 20

static struct live l;
static pid_t last; /* of those asleep */

/* The main thread reads commands, all others wait for the end: nobody runs. */
static void begin(void)
{
	live_begin(&l, "cap_threads", NULL, NULL);
	last = (pid_t)live_ask(&l, "asleep 20", "ok");
	for (int i = 0; i < 3; i++) {
		live_until_blocked(l.pid);
		live_until_blocked(last);
		live_ticks(&l, 1);
	}
}

static void tear_down(void)
{
	live_end(&l);
}

static struct thread *thread_of(pid_t tid)
{
	struct thread *th = capture_thread(l.capture, (uint32_t)tid);

	ck_assert_ptr_nonnull(th);
	return th;
}

static uint64_t samples_of(pid_t tid)
{
	return live_thread(&l, tid)->samples;
}

/* The main thread runs for a moment, and waits again. */
static void run_main(void)
{
	(void)live_ask(&l, "name x", "ok");
	live_until_blocked(l.pid);
}

/* As if it had run. Returns its own file. */
static int disguise(struct thread *th)
{
	static const char text[] = "1 1 1\n";
	int was = th->activity.schedstat_fd;
	int fd = memfd_create("schedstat", MFD_CLOEXEC);

	ck_assert_int_eq(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	th->activity.schedstat_fd = fd;
	return was;
}

START_TEST(all_fall_asleep)
{
	const struct target *t;

	begin();
	t = thread_of(last)->target;
	ck_assert_uint_eq(t->n_threads, SLEEPERS + 1);
	ck_assert_uint_eq(t->n_asleep, SLEEPERS + 1);
	ck_assert_ptr_null(t->awake);
	live_check_sum(&l);
}
END_TEST

START_TEST(who_sleeps_is_not_asked_while_nobody_runs)
{
	uint64_t samples, repeated;
	struct thread *th;
	int was;

	begin();
	th = thread_of(last);
	was = disguise(th);
	samples = samples_of(last);
	repeated = l.counters.repeated;
	live_ticks(&l, 10);
	ck_assert_uint_eq(samples_of(last), samples);
	ck_assert_uint_eq(l.counters.repeated - repeated, 10 * (SLEEPERS + 1));
	/* Somebody has run: all are asked. */
	run_main();
	live_ticks(&l, 1);
	ck_assert_uint_eq(samples_of(last), samples + 1);
	close_fd(&th->activity.schedstat_fd);
	th->activity.schedstat_fd = was;
	live_check_sum(&l);
}
END_TEST

START_TEST(who_has_run_is_seen_at_the_next_tick)
{
	uint64_t before, others;

	begin();
	for (int i = 0; i < 50; i++) {
		before = samples_of(l.pid);
		others = samples_of(last);
		run_main();
		live_ticks(&l, 1);
		ck_assert_uint_eq(samples_of(l.pid), before + 1);
		ck_assert_uint_eq(samples_of(last), others);
	}
	live_check_sum(&l);
}
END_TEST

/* The longer nobody runs, the fewer looks, and no tick is lost. */
START_TEST(who_has_long_slept_is_looked_at_more_rarely)
{
	uint64_t looks, samples;

	begin();
	looks = l.records[RECORD_TICK];
	live_ticks(&l, 100);
	ck_assert_uint_eq(l.records[RECORD_TICK] - looks, 100);
	live_ticks(&l, 2000);
	looks = l.records[RECORD_TICK];
	live_ticks(&l, 80);
	ck_assert_uint_eq(l.records[RECORD_TICK] - looks, 10);
	/* Who runs then is seen at the next look. */
	samples = samples_of(l.pid);
	run_main();
	live_ticks(&l, 8);
	ck_assert_uint_eq(samples_of(l.pid), samples + 1);
	/* And from then on each tick is one again. */
	looks = l.records[RECORD_TICK];
	live_ticks(&l, 100);
	ck_assert_uint_eq(l.records[RECORD_TICK] - looks, 100);
	ck_assert_uint_eq(l.counters.ticks, l.tick);
	live_check_sum(&l);
}
END_TEST

START_TEST(what_happens_ends_the_rest)
{
	uint64_t looks;

	begin();
	live_ticks(&l, 1100);
	capture_reset(l.capture, &l.sink);
	looks = l.records[RECORD_TICK];
	live_ticks(&l, 1);
	ck_assert_uint_eq(l.records[RECORD_TICK] - looks, 1);
	live_ticks(&l, 1100);
	(void)live_ask(&l, "asleep 1", "ok");
	looks = l.records[RECORD_TICK];
	live_reap(&l);
	live_ticks(&l, 1);
	ck_assert_uint_eq(l.records[RECORD_TICK] - looks, 1);
	live_check_sum(&l);
}
END_TEST

/* The run times of those that end go into what must stay the same. */
START_TEST(threads_come_and_go)
{
	begin();
	for (int i = 0; i < 5; i++) {
		(void)live_ask(&l, "busy 2", "ok");
		live_ticks(&l, 2);
		(void)live_ask(&l, "join", "ok");
		last = (pid_t)live_ask(&l, "asleep 20", "ok");
		live_ticks(&l, 2);
		live_check_sum(&l);
	}
	ck_assert_uint_eq(thread_of(last)->target->n_threads, SLEEPERS + 1);
	live_check_sum(&l);
}
END_TEST

/* A reader that starts from nothing is told of those asleep, too. */
START_TEST(a_reset_wakes_all)
{
	uint64_t samples;

	begin();
	samples = samples_of(last);
	capture_reset(l.capture, &l.sink);
	live_ticks(&l, 1);
	ck_assert_uint_eq(samples_of(last), 1);
	ck_assert_uint_ge(samples, 1);
	live_check_sum(&l);
}
END_TEST

/* The reader was short of bytes, of a thread that does not run. */
START_TEST(a_hint_for_more_wakes)
{
	struct thread *th;
	uint64_t samples;

	begin();
	th = thread_of(last);
	samples = samples_of(last);
	capture_hint(l.capture, LIVE_TARGET, (uint32_t)last, th->copied_top);
	live_ticks(&l, 1);
	ck_assert_uint_eq(samples_of(last), samples);
	capture_hint(l.capture, LIVE_TARGET, (uint32_t)last,
		     th->copied_top + 1);
	live_ticks(&l, 1);
	ck_assert_uint_eq(samples_of(last), samples + 1);
	live_check_sum(&l);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("sleepers");
	TCase *tc = tcase_create("sleepers");

	tcase_set_timeout(tc, LIVE_TIMEOUT_S);
	tcase_add_checked_fixture(tc, NULL, tear_down);
	tcase_add_test(tc, all_fall_asleep);
	tcase_add_test(tc, who_sleeps_is_not_asked_while_nobody_runs);
	tcase_add_test(tc, who_has_run_is_seen_at_the_next_tick);
	tcase_add_test(tc, who_has_long_slept_is_looked_at_more_rarely);
	tcase_add_test(tc, what_happens_ends_the_rest);
	tcase_add_test(tc, threads_come_and_go);
	tcase_add_test(tc, a_reset_wakes_all);
	tcase_add_test(tc, a_hint_for_more_wakes);
	suite_add_tcase(s, tc);
	return s;
}
