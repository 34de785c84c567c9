#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/capture/capture.h"
#include "lib/capture/sample.h"
#include "lib/capture/schedule.h"
#include "lib/capture/state.h"
#include "lib/capture/tracees.h"
#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

#define SLEEPERS 20

static struct live l;
static pid_t last; /* the last one of the sleeping threads */

/*
 * Starts the target. The main thread waits for commands, and all others wait for the end, so no
 * thread runs.
 */
static void begin(void)
{
	live_begin(&l, "cap_threads", NULL, NULL);
	last = (pid_t)live_ask(&l, "asleep 20", "ok");
	for (int i = 0; i < 3; i++) {
		live_until_blocked(&l, l.pid);
		live_until_blocked(&l, last);
		live_ticks(&l, 1);
	}
}

static void tear_down(void)
{
	live_end(&l);
}

static uint64_t samples_of(pid_t tid)
{
	return live_thread(&l, tid)->samples;
}

/* Lets the main thread run for a moment, until it waits again. */
static void run_main(void)
{
	(void)live_ask(&l, "name x", "ok");
	live_until_blocked(&l, l.pid);
}

/* Makes the thread look as if it had run. */
static void disguise(struct thread *th)
{
	live_script(&th->activity.schedstat_fd, "1 1 1\n");
}

static void check_looks(unsigned int ticks, uint64_t looks)
{
	const uint64_t before = l.records[RECORD_TICK];

	live_ticks(&l, ticks);
	ck_assert_uint_eq(l.records[RECORD_TICK] - before, looks);
}

FIXTURE(NULL, tear_down)

TEST(threads_that_do_not_run_fall_asleep)
{
	const struct traced_process *t;

	begin();
	t = live_known(&l, last)->target;
	ck_assert_uint_eq(t->threads.n, SLEEPERS + 1);
	ck_assert_uint_eq(t->threads.n_asleep, SLEEPERS + 1);
	ck_assert_ptr_null(t->threads.awake);
	live_check_sum(&l);
}

TEST(sleeping_threads_are_not_checked_while_none_has_run)
{
	uint64_t samples, repeated;
	struct thread *th;

	begin();
	th = live_known(&l, last);
	disguise(th);
	samples = samples_of(last);
	repeated = l.counters.repeated;
	live_ticks(&l, 10);
	ck_assert_uint_eq(samples_of(last), samples);
	ck_assert_uint_eq(l.counters.repeated - repeated, 10 * (SLEEPERS + 1));
	live_check_sum(&l);
}

/*
 * The thread that ran last is checked first. The others are checked only if the run times found do
 * not explain the CPU clock.
 */
TEST(threads_are_checked_until_their_run_times_explain_the_clock)
{
	uint64_t samples, mains;
	struct thread *th;

	begin();
	run_main();
	live_ticks(&l, 1);
	th = live_known(&l, last);
	disguise(th);
	samples = samples_of(last);
	mains = samples_of(l.pid);
	for (int i = 1; i <= 20; i++) {
		run_main();
		live_ticks(&l, 1);
		ck_assert_uint_eq(samples_of(l.pid), mains + (uint64_t)i);
		ck_assert_uint_eq(samples_of(last), samples);
	}
	/* Makes it look as if another thread had run for a nanosecond. */
	th->target->threads.ended_ns--;
	run_main();
	live_ticks(&l, 1);
	ck_assert_uint_eq(samples_of(last), samples + 1);
	live_check_sum(&l);
}

/*
 * A thread that has run is looked at at once: threads that work for a moment only would be asleep
 * again after all checks.
 */
/*
 * Returns the thread that was made before the last one. Other processes may have the tids in
 * between.
 */
static struct thread *last_but_one(void)
{
	pid_t tid = last - 1;

	while (tid > l.pid && tracees_find(l.capture, (uint32_t)tid) == NULL)
		tid--;
	return live_known(&l, tid);
}

TEST(a_thread_that_has_run_is_looked_at_before_the_next_check)
{
	struct thread *a, *b;

	begin();
	a = live_known(&l, last);
	b = last_but_one();
	disguise(a);
	disguise(b);
	live_step(NS_PER_US);
	a->target->threads.ended_ns--;
	run_main();
	live_ticks(&l, 1);
	/* Both were found blocked, one before the times of the other were read. */
	ck_assert(a->asleep && b->asleep);
	ck_assert(a->sleep.since_ns < b->look.ns || b->sleep.since_ns < a->look.ns);
	live_check_sum(&l);
}

/* Returns how many timers of this process stand on the CPU clock of pid. See proc(5). */
static unsigned int timers_on(pid_t pid)
{
	FILE *file = fopen("/proc/self/timers", "re");
	char line[128], wanted[64];
	unsigned int n = 0;

	ck_assert_ptr_nonnull(file);
	(void)snprintf(wanted, sizeof(wanted), "ClockID: %d\n", clock_of_process(pid));
	while (fgets(line, sizeof(line), file) != NULL)
		n += strcmp(line, wanted) == 0;
	(void)fclose(file);
	return n;
}

TEST(one_timer_on_the_clock_of_a_process_with_many_sleepers)
{
	begin();
	live_ticks(&l, 100);
	ck_assert_uint_eq(timers_on(l.pid), 1);
	ck_assert_uint_eq(timers_on(getpid()), 0);
	OK(kill(l.pid, SIGKILL));
	while (l.gone == 0)
		live_wait(&l);
	ck_assert_uint_eq(timers_on(l.pid), 0);
}

TEST(no_timer_on_the_clock_of_a_process_with_few_sleepers)
{
	live_begin(&l, "cap_threads", NULL, NULL);
	last = (pid_t)live_ask(&l, "asleep 3", "ok");
	live_until_blocked(&l, last);
	live_ticks(&l, 100);
	ck_assert_uint_eq(timers_on(l.pid), 0);
}

TEST(a_sleeping_thread_that_ran_is_found_at_the_next_tick)
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

/* The longer no thread runs, the fewer looks there are. No tick is lost. */
TEST(a_process_that_sleeps_longer_is_looked_at_less_often)
{
	uint64_t looks, samples;

	begin();
	check_looks(100, 100);
	live_ticks(&l, 2000);
	check_looks(80, 10);
	/* A thread that runs then is found at the next look. */
	samples = samples_of(l.pid);
	run_main();
	for (looks = 0; samples_of(l.pid) == samples; looks++)
		live_ticks(&l, 1);
	ck_assert_uint_le(looks, 8);
	ck_assert_uint_eq(samples_of(l.pid), samples + 1);
	/* From then on each tick is a look again. */
	check_looks(100, 100);
	ck_assert_uint_eq(l.counters.ticks, l.tick);
	live_check_sum(&l);
}

/*
 * A process with many threads is looked at less often sooner, because reading its clock costs more.
 */
TEST(with_many_threads_looks_become_rare_sooner)
{
	live_begin(&l, "cap_threads", NULL, NULL);
	last = (pid_t)live_ask(&l, "asleep 511", "ok");
	/* Waits until all threads have slept for 64 ticks. */
	do
		live_ticks(&l, 1);
	while (l.tick <= l.capture->targets->target->schedule.awake_tick + 8 * 8);
	check_looks(80, 10);
	live_check_sum(&l);
}

/* Twice the number of ticks between two counts of the threads. */
#define COUNT_TICKS 32

/* Threads are counted by a system call for each process, which is useless while no thread runs. */
TEST(threads_are_not_counted_while_none_has_run)
{
	struct traced_process *t;
	uint64_t scanned;
	int was;

	begin();
	t = live_known(&l, last)->target;
	live_ticks(&l, COUNT_TICKS);
	was = t->task_fd;
	/*
	 * Makes it look as if there were other threads. A scan sets when the next one may be made.
	 */
	t->task_fd = open("/", O_PATH | O_CLOEXEC);
	ck_assert_int_ge(t->task_fd, 0);
	scanned = t->scan.retry_tick;
	live_ticks(&l, 10 * COUNT_TICKS);
	ck_assert_uint_eq(t->scan.retry_tick, scanned);
	run_main();
	live_ticks(&l, COUNT_TICKS);
	ck_assert_uint_gt(t->scan.retry_tick, scanned);
	close_fd(&t->task_fd);
	t->task_fd = was;
	live_check_sum(&l);
}

/*
 * A new thread that the kernel has not reported is found, because the thread that made it has run.
 */
TEST(an_unreported_new_thread_of_a_sleeping_process_is_found)
{
	struct traced_process *t;

	begin();
	t = live_known(&l, last)->target;
	live_ticks(&l, 2000);
	ck_assert_ptr_null(t->threads.awake);
	/* Makes the thread look like one that was never reported. */
	tracees_remove(live_known(&l, last), MISSED_EXITED);
	run_main();
	live_ticks(&l, COUNT_TICKS);
	ck_assert_uint_eq(t->threads.n, SLEEPERS + 1);
	ck_assert_ptr_nonnull(live_known(&l, last));
}

/* The clock is read only when the tick comes and when it is over, so that its cost stays low. */
TEST(a_look_at_sleepers_reads_the_clock_twice)
{
	const uint64_t step = 1000;
	uint64_t cost_ns, since_ns;

	begin();
	live_ticks(&l, 10);
	live_step(step);
	for (int i = 0; i < 10; i++) {
		since_ns = l.capture->options.now_ns();
		cost_ns = l.counters.cost_ns;
		l.tick++;
		live_look(&l, l.tick);
		ck_assert_uint_eq(l.counters.cost_ns - cost_ns, step);
		ck_assert_uint_eq(l.capture->options.now_ns() - since_ns, 3 * step);
	}
	ck_assert_uint_eq(l.counters.ticks, l.tick);
}

static void say(struct thread *th, uint64_t run_ns, bool running)
{
	char text[64];

	/* The number of slices grows with the run time. */
	(void)snprintf(text, sizeof(text), "%llu 0 %llu\n",
		       (unsigned long long)(NS_PER_SEC + run_ns),
		       (unsigned long long)(1 + run_ns / NS_PER_US));
	live_script(&th->activity.schedstat_fd, text);
	if (running)
		live_script(&th->activity.syscall_fd, "running\n");
	else
		live_unscript(&th->activity.syscall_fd);
	/* The process's CPU clock does not include this run time. */
	th->target->threads.ended_known = false;
}

/*
 * Lets the thread run for `halves` half ticks, which begin phase / 2 + 1/4 ticks after a look.
 * Returns the number of half ticks for which its samples are marked as running.
 */
static uint64_t marked_as_running(struct thread *th, uint64_t halves, uint64_t phase)
{
	const uint64_t half_ns = LIVE_TICK_NS / 2;
	const uint64_t start_ns = phase * half_ns + half_ns / 2;
	uint64_t samples = samples_of(l.pid), since = 0, sum = 0;

	for (uint64_t n = 1; n <= 10 + (phase + halves) / 2; n++) {
		uint64_t ran = n * LIVE_TICK_NS < start_ns ? 0 : n * LIVE_TICK_NS - start_ns;
		bool running = ran > 0 && ran < halves * half_ns;
		const struct live_thread *seen;

		say(th, min_u64(ran, halves * half_ns), running);
		live_ticks(&l, 1);
		live_until_blocked(&l, l.pid);
		seen = live_thread(&l, l.pid);
		if (seen->samples == samples)
			continue;
		samples = seen->samples;
		if (since != 0)
			sum += 2 * (seen->last_sample_tick - since);
		since = running ? seen->last_sample_tick : 0;
	}
	ck_assert_uint_eq(since, 0);
	return sum;
}

/* Makes the process look as if it had slept long enough, so that its next look is n ticks later. */
static void begin_skipping(struct traced_process *t, uint64_t n)
{
	t->schedule.awake_tick = 0;
	do {
		schedule_at_once(t);
		live_ticks(&l, 1);
	} while ((l.tick + n) % 8 != 0);
	ck_assert_ptr_null(t->threads.awake);
	ck_assert_uint_eq(t->schedule.next_tick, l.tick + n);
}

/*
 * Averaged over all moments at which a run can begin, the samples after skipped looks cover the
 * real run time, however long the run is.
 */
TESTS(samples_after_skipped_looks_cover_the_real_run_time, 2)
{
	static const uint64_t halves[] = {1, 2, 3, 5, 8, 15, 16, 17, 40};
	/*
	 * The number of ticks to the next look. The first distance is mostly shorter than the later
	 * ones.
	 */
	const uint64_t rest = _i == 0 ? 8 : 3;
	struct thread *th;

	live_begin(&l, "cap_threads", NULL, NULL);
	live_until_blocked(&l, l.pid);
	live_ticks(&l, 1200);
	th = live_known(&l, l.pid);
	for (size_t i = 0; i < array_size(halves); i++) {
		uint64_t sum = 0;

		for (uint64_t phase = 0; phase < 2 * rest; phase++) {
			say(th, 0, false);
			/* This script began with less run time than the last one ended with. */
			th->balance = (struct thread_balance){0};
			th->target->balance = (struct process_balance){0};
			live_ticks(&l, 8);
			begin_skipping(th->target, rest);
			sum += marked_as_running(th, halves[i], phase);
		}
		ck_assert_uint_eq(sum, 2 * rest * halves[i]);
	}
	ck_assert_uint_eq(live_missed(&l), 0);
	live_check_sum(&l);
}

/* The ticks of the looks are the same for all processes, whenever their sleep began. */
TEST(sleeping_processes_are_looked_at_at_common_ticks)
{
	const struct traced_process *t;

	begin();
	t = live_known(&l, last)->target;
	for (int begun = 0; begun < 3; begun++) {
		live_ticks(&l, 1100);
		for (int i = 0; i < 20; i++) {
			live_ticks(&l, 1);
			ck_assert_uint_eq(t->schedule.next_tick % 8, 0);
			ck_assert_uint_le(t->schedule.next_tick, l.tick + 8);
		}
		capture_reset(l.capture, &l.sink);
	}
	live_check_sum(&l);
}

TEST(any_event_ends_the_skipping_of_looks)
{
	uint64_t looks;

	begin();
	live_ticks(&l, 1100);
	capture_reset(l.capture, &l.sink);
	check_looks(1, 1);
	live_ticks(&l, 1100);
	(void)live_ask(&l, "asleep 1", "ok");
	looks = l.records[RECORD_TICK];
	live_reap(&l);
	live_ticks(&l, 1);
	ck_assert_uint_eq(l.records[RECORD_TICK] - looks, 1);
	live_check_sum(&l);
}

/* The run times of ended threads are part of the difference that must stay the same. */
TEST(the_clock_stays_explained_when_threads_start_and_end)
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
	ck_assert_uint_eq(live_known(&l, last)->target->threads.n, SLEEPERS + 1);
	live_check_sum(&l);
}

/* After a reset the sleeping threads are announced and sampled, too. */
TEST(a_reset_wakes_all_threads)
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

/* A hint of the reader for more bytes wakes a sleeping thread. */
TEST(a_hint_for_more_bytes_wakes_the_thread)
{
	struct thread *th;
	uint64_t samples, sp;

	begin();
	th = live_known(&l, last);
	samples = samples_of(last);
	sp = live_thread(&l, last)->sp;
	capture_hint(l.capture, &l.sink, LIVE_TARGET, (uint32_t)last, sp, th->stack.copied_top, 0);
	live_ticks(&l, 1);
	ck_assert_uint_eq(samples_of(last), samples);
	capture_hint(l.capture, &l.sink, LIVE_TARGET, (uint32_t)last, sp, th->stack.copied_top + 1,
		     0);
	live_ticks(&l, 1);
	ck_assert_uint_eq(samples_of(last), samples + 1);
	capture_hint(l.capture, &l.sink, LIVE_TARGET, (uint32_t)last, sp, th->stack.copied_top,
		     4096);
	live_ticks(&l, 1);
	ck_assert_uint_eq(samples_of(last), samples + 2);
	live_check_sum(&l);
}
