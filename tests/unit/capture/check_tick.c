#include "lib/capture/tick.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/capture/capture.h"
#include "lib/capture/detach.h"
#include "lib/capture/sample.h"
#include "lib/capture/schedule.h"
#include "lib/capture/sleepers.h"
#include "lib/capture/state.h"
#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

static struct live l;

static void threads(const char *argument)
{
	live_begin(&l, "cap_threads", argument, NULL);
}

static void tear_down(void)
{
	live_end(&l);
}

/* Interrupts a thread that does not run, as if it ran. */
static void interrupt(pid_t tid)
{
	live_tick_running(&l, live_known(&l, tid));
}

/* Puts the main thread into uninterruptible sleep: in vfork(2) it waits for its child. */
static void sleep_uninterruptibly(void)
{
	live_say(&l, "vfork");
	live_until_state(&l, l.pid, 'D');
}

static void wake(void)
{
	ck_assert_int_eq(write(l.in, "!", 1), 1);
	(void)live_answer(&l, "ok");
}

/* FIRSTS_MAX of tick.c: threads that get their first sample at one tick. */
#define FIRSTS 64

/*
 * Attaches to a process whose threads all slept before. For capture, no time passes until the test
 * says so.
 */
static void attach_to_many(const char *asleep, size_t ring_bytes)
{
	l = (struct live){.pidfd = -1, .in = -1, .out = -1};
	live_start(&l, "cap_threads", NULL, NULL);
	live_until_blocked(&l, (pid_t)live_ask(&l, asleep, "ok"));
	live_open(&l, ring_bytes);
	live_step(0);
	live_attach(&l);
}

FIXTURE(NULL, tear_down)

TEST(new_threads_of_a_large_process_are_sampled_in_turns)
{
	pid_t late;

	attach_to_many("asleep 199", 16u << 20);
	for (uint64_t tick = 1; tick <= 4; tick++) {
		live_tick(&l);
		live_settle(&l);
		ck_assert_uint_eq(l.counters.captured, min_u64(tick * FIRSTS, 200));
	}
	ck_assert_uint_eq(l.counters.expected, FIRSTS + 2 * FIRSTS + 3 * FIRSTS + 200);
	/* Threads that are made later are sampled at once. */
	late = (pid_t)live_ask(&l, "asleep 100", "ok");
	live_ticks(&l, 1);
	ck_assert_uint_eq(live_thread(&l, late)->samples, 1);
	ck_assert_uint_eq(l.counters.threads, 300);
	ck_assert_uint_ge(l.counters.captured, 300);
	live_check_sum(&l);
}

/* Gives a tick, and handles no stop. Returns in how many portions the threads were looked at. */
static unsigned int portions(struct traced_process *t)
{
	unsigned int n = 1;

	l.tick++;
	ck_assert(tick_begin(t, l.tick, l.tick * l.tick_ns));
	while (tick_continue(t))
		n++;
	return n;
}

/*
 * A thread that is interrupted already does not count in a portion, because each check for stops
 * after a portion costs time.
 */
TEST(interrupted_threads_do_not_count_in_a_portion)
{
	struct traced_process *t;
	size_t n = 0;

	threads(NULL);
	(void)live_ask(&l, "asleep 15", "ok");
	live_ticks(&l, 2);
	t = live_known(&l, l.pid)->target;
	while (t->threads.asleep != NULL)
		sleepers_wake(t->threads.asleep);
	for (struct thread *th = t->threads.awake; th != NULL; th = th->next, n++)
		live_script(&th->activity.syscall_fd, "running\n");
	ck_assert_uint_eq(n, 16);
	ck_assert_uint_eq(portions(t), 4);
	ck_assert_uint_eq(capture_pending(l.capture), 16);
	ck_assert_uint_eq(portions(t), 1);
	for (struct thread *th = t->threads.awake; th != NULL; th = th->next)
		live_unscript(&th->activity.syscall_fd);
	live_settle(&l);
	live_check_sum(&l);
}

/* The number of first samples is limited by time, whatever the rate is. */
TEST(turns_are_counted_by_time_and_not_by_ticks)
{
	attach_to_many("asleep 199", 16u << 20);
	l.tick_ns = NS_PER_MS;
	live_ticks(&l, 9);
	ck_assert_uint_eq(l.counters.captured, FIRSTS);
	live_ticks(&l, 1);
	ck_assert_uint_eq(l.counters.captured, 2 * FIRSTS);
	live_check_sum(&l);
}

/* New threads wait for a reader that does not read, but only for a limited time. */
TEST(turns_wait_for_half_of_the_ring_to_be_free)
{
	const size_t size = 4u << 20;
	uint64_t captured;

	attach_to_many("asleep 500", size);
	l.reads = false;
	live_ticks(&l, 100);
	captured = l.counters.captured;
	ck_assert_uint_lt(captured, 501);
	ck_assert_uint_lt(ring_space(&l.sink.ring), size / 2);
	ck_assert_uint_eq(live_missed(&l), 0);
	live_ticks(&l, 199);
	for (size_t i = 0; i < 501; i++)
		ck_assert(l.capture->threads.by_index[i]->life != THREAD_AWAITS_TURN);
	/* From then on, samples without room are counted as missed. */
	while (l.counters.missed[MISSED_RING_FULL] == 0) {
		while (l.capture->targets->target->threads.asleep != NULL)
			sleepers_wake(l.capture->targets->target->threads.asleep);
		live_ticks(&l, 1);
		live_patience();
	}
	live_check_sum(&l);
}

/* PORTION_MAX of tick.c: threads that are looked at even if the time is over. */
#define LOOKS 256

/*
 * Each look takes longer than the time limit of a tick. The other threads wait for the next tick.
 */
TEST(a_tick_of_many_threads_has_a_time_limit)
{
	attach_to_many("asleep 511", 16u << 20);
	live_ticks(&l, 512 / FIRSTS);
	ck_assert_uint_eq(l.counters.captured, 512);
	capture_reset(l.capture, &l.sink);
	live_step(50 * NS_PER_MS);
	live_tick(&l);
	live_step(0);
	ck_assert_uint_eq(l.counters.missed[MISSED_LATE], 512 - LOOKS);
	live_settle(&l);
	live_check_sum(&l);
	/* The waiting threads are looked at at the next ticks with time. */
	live_later(3600 * NS_PER_SEC);
	live_ticks(&l, 2);
	ck_assert_uint_eq(l.counters.missed[MISSED_LATE], 512 - LOOKS);
	ck_assert_uint_ge(l.counters.captured, 2 * 512);
	live_check_sum(&l);
}

/* Makes each sleeping thread look as if it had run for a nanosecond since it fell asleep. */
static void stir_sleepers(struct traced_process *t)
{
	for (struct thread *th = t->threads.asleep; th != NULL; th = th->next) {
		th->sleep.mark.run_ns--;
		t->threads.asleep_ns--;
	}
}

/* Returns the number of threads without a sample since this tick. */
static unsigned int without_sample_since(uint64_t tick)
{
	unsigned int n = 0;

	for (size_t i = 0; i < state_threads(l.capture); i++) {
		const struct thread *th = l.capture->threads.by_index[i];

		n += live_thread(&l, (pid_t)th->tid)->last_sample_tick < tick;
	}
	return n;
}

/*
 * Each tick has time for little more than a third of the threads, and all threads run between two
 * ticks. So each thread has a sample in each three ticks: those that a tick leaves out come first
 * in the next one.
 */
TEST(ticks_without_time_leave_out_other_threads_each_time)
{
	const unsigned int n = 3 * LOOKS;
	struct traced_process *t;

	attach_to_many("asleep 767", 16u << 20);
	live_ticks(&l, n / FIRSTS);
	ck_assert_uint_eq(l.counters.captured, n);
	t = live_known(&l, l.pid)->target;
	for (int i = 0; i < 4; i++) {
		const uint64_t first = l.tick + 1;

		for (int k = 0; k < 3; k++) {
			stir_sleepers(t);
			/* Short enough that no read of memory counts as slow (slow_memory.c). */
			live_step(90 * NS_PER_US);
			live_tick(&l);
			live_step(0);
			live_settle(&l);
			live_read(&l);
			ck_assert_uint_gt(without_sample_since(l.tick), n / 2);
		}
		ck_assert_uint_eq(without_sample_since(first), 0);
	}
	live_check_sum(&l);
}

/* Every other tick is late: only ticks with odd numbers come. */
TEST(a_thread_in_uninterruptible_sleep_is_sampled_later)
{
	uint64_t pending_tick, stops;

	threads(NULL);
	live_ticks(&l, 1);
	stops = l.counters.stops;
	sleep_uninterruptibly();
	interrupt(l.pid);
	ck_assert_uint_eq(capture_pending(l.capture), 1);
	pending_tick = l.tick;
	for (int i = 0; i < 10; i++)
		live_tick_late(&l, 2);
	ck_assert_uint_eq(capture_pending(l.capture), 0);
	ck_assert_uint_eq(live_thread(&l, l.pid)->last_sample_tick, pending_tick);
	ck_assert_uint_gt(l.counters.filled, 0);
	ck_assert_uint_gt(l.counters.repeated, 0);
	ck_assert_uint_eq(live_missed(&l), 0);
	ck_assert_uint_eq(l.counters.stops, stops);
	live_check_sum(&l);
	/* The interrupt is still under way, and its stop counts as capture's. */
	wake();
	ck_assert_uint_eq(l.counters.stops, stops + 1);
	live_settle(&l);
	live_check_sum(&l);
}

/* The thread neither stops nor blocks for 4 s of the ticks' time. */
TEST(a_thread_that_does_not_stop_counts_as_missed_after_a_while)
{
	struct thread *th;

	threads(NULL);
	live_ticks(&l, 1);
	sleep_uninterruptibly();
	th = live_known(&l, l.pid);
	live_script(&th->activity.syscall_fd, "running\n");
	sleepers_wake(th);
	live_tick(&l);
	for (int i = 0; i < 399; i++)
		live_tick(&l);
	ck_assert_uint_eq(l.counters.missed[MISSED_NOT_STOPPED], 0);
	for (int i = 0; i < 5; i++)
		live_tick(&l);
	ck_assert_uint_ge(l.counters.missed[MISSED_NOT_STOPPED], 400);
	ck_assert(live_thread(&l, l.pid)->missing);
	live_unscript(&th->activity.syscall_fd);
	wake();
	live_settle(&l);
	live_check_sum(&l);
}

/*
 * The leader is interrupted while it dies, so neither a stop nor a status comes. When capture
 * attached, the leader was already past its last stop.
 */
TEST(a_leader_that_dies_instead_of_stopping_is_dead)
{
	live_begin_without_exit(&l, "cap_threads");
	live_ticks(&l, 1);
	l.first = (pid_t)live_ask(&l, "leave", "ready");
	live_until_state(&l, l.pid, 'Z');
	live_until_blocked(&l, l.first);
	interrupt(l.pid);
	ck_assert_uint_eq(capture_pending(l.capture), 1);
	for (int i = 0; i < 20; i++)
		live_tick(&l);
	ck_assert_uint_eq(capture_pending(l.capture), 0);
	/* The last expected sample is that of the interrupt. */
	ck_assert_uint_eq(l.counters.missed[MISSED_EXITED], 1);
	ck_assert_uint_eq(l.counters.expected, 1 + 1 + 21);
	ck_assert(live_thread(&l, l.pid)->exited);
	live_check_sum(&l);
}

/*
 * On a kernel without schedstat a sleeping thread is looked at twice at each tick, and never
 * stopped.
 */
TEST(without_schedstat_a_blocked_thread_is_sampled_at_each_tick)
{
	struct thread *th;

	threads(NULL);
	live_until_blocked(&l, l.pid);
	th = live_known(&l, l.pid);
	live_script(&th->activity.schedstat_fd, "0 0 0\n");
	live_ticks(&l, 20);
	ck_assert_uint_eq(l.counters.captured, 20);
	ck_assert_uint_eq(l.counters.stops, 0);
	ck_assert_uint_eq(live_thread(&l, l.pid)->samples, 20);
	live_check_sum(&l);
}

/*
 * After a late tick, ticks of a running thread are missed, and those of a sleeping thread are
 * known.
 */
TEST(late_ticks_are_counted)
{
	threads(NULL);
	(void)live_ask(&l, "busy 1", "ok");
	live_until_blocked(&l, l.pid);
	live_ticks(&l, 1);
	live_until_all_run(&l);
	live_tick_late(&l, 10);
	live_settle(&l);
	ck_assert_uint_eq(l.counters.ticks, 11);
	ck_assert_uint_eq(l.counters.expected, 22);
	ck_assert_uint_eq(l.counters.repeated, 10);
	ck_assert_uint_eq(l.counters.missed[MISSED_LATE], 9);
	ck_assert_uint_eq(l.counters.captured, 3);
	live_check_sum(&l);
}

TEST(a_tick_is_handled_once)
{
	threads(NULL);
	live_ticks(&l, 3);
	live_tick_late(&l, 0);
	live_settle(&l);
	ck_assert_uint_eq(l.counters.ticks, 3);
	ck_assert_uint_eq(l.counters.expected, 3);
	ck_assert_uint_eq(l.records[RECORD_TICK], 3);
}

/* At a lower rate the ticks are evenly spread, and a skipped tick does not count. */
TEST(a_lower_rate_leaves_out_ticks)
{
	uint64_t last, ticks;

	threads(NULL);
	live_until_blocked(&l, l.pid);
	live_ticks(&l, 2);
	capture_rate(l.capture, LIVE_TARGET + 1, 1, 4);
	live_ticks(&l, 1);
	ck_assert_uint_eq(l.records[RECORD_TICK], 3);
	capture_rate(l.capture, LIVE_TARGET, 2, 5);
	ticks = l.records[RECORD_TICK];
	for (int i = 0; i < 20; i++) {
		last = l.records[RECORD_TICK];
		live_ticks(&l, 2);
		ck_assert_uint_le(l.records[RECORD_TICK] - last, 1);
		last = l.records[RECORD_TICK];
		live_ticks(&l, 3);
		ck_assert_uint_ge(l.records[RECORD_TICK] - last, 1);
	}
	ck_assert_uint_eq(l.records[RECORD_TICK] - ticks, 40);
	ck_assert_uint_eq(l.counters.ticks, 43);
	ck_assert_uint_eq(l.counters.expected, 43);
	ck_assert_uint_eq(live_missed(&l), 0);
	live_check_sum(&l);
	/* The last tick is late. Of the ten ticks, four are the target's. */
	live_tick_late(&l, 10);
	ck_assert_uint_eq(l.counters.ticks, 47);
	live_check_sum(&l);
}

/*
 * No thread of a withheld target is looked at or stopped, and the reader learns that the threads'
 * state is unknown. Afterwards each thread is sampled again, also one that has slept throughout.
 */
TEST(a_withheld_target_is_not_stopped_and_its_samples_are_missed)
{
	uint64_t stops, captured;
	pid_t busy, asleep;

	threads(NULL);
	asleep = (pid_t)live_ask(&l, "asleep 3", "ok");
	busy = (pid_t)live_ask(&l, "busy 1", "ok");
	live_until_blocked(&l, asleep);
	live_until_blocked(&l, l.pid);
	live_ticks(&l, 3);
	capture_withhold(l.capture, LIVE_TARGET + 1, true);
	live_ticks(&l, 1);
	ck_assert_uint_eq(l.counters.missed[MISSED_BUDGET], 0);
	capture_withhold(l.capture, LIVE_TARGET, true);
	stops = l.counters.stops;
	captured = l.counters.captured;
	live_ticks(&l, 10);
	ck_assert_uint_eq(l.counters.stops, stops);
	ck_assert_uint_eq(l.counters.captured, captured);
	ck_assert_uint_eq(l.counters.missed[MISSED_BUDGET], 10 * 5);
	ck_assert(live_thread(&l, busy)->missing);
	ck_assert(live_thread(&l, asleep)->missing);
	ck_assert_uint_eq(l.records[RECORD_MISSED], 5);
	live_check_sum(&l);
	capture_withhold(l.capture, LIVE_TARGET, false);
	live_ticks(&l, 2);
	ck_assert_uint_eq(l.counters.missed[MISSED_BUDGET], 10 * 5);
	ck_assert_uint_eq(l.counters.captured, captured + 5 + 1);
	ck_assert(!live_thread(&l, busy)->missing);
	ck_assert(!live_thread(&l, asleep)->missing);
	live_check_sum(&l);
}

/* A stop that comes after its sample was given up gives none. */
TEST(the_sample_under_way_of_a_withheld_target_is_missed)
{
	threads(NULL);
	live_until_blocked(&l, l.pid);
	live_ticks(&l, 1);
	sleep_uninterruptibly();
	interrupt(l.pid);
	capture_withhold(l.capture, LIVE_TARGET, true);
	ck_assert_uint_eq(l.counters.missed[MISSED_BUDGET], 1);
	live_check_sum(&l);
	live_ticks(&l, 2);
	ck_assert_uint_eq(l.counters.missed[MISSED_BUDGET], 3);
	wake();
	live_check_sum(&l);
}

/*
 * Checks that the next tick that capture asks for is a tick of the target, and that no earlier one
 * is.
 */
static void check_next_tick(void)
{
	const uint64_t next = capture_next_tick(l.capture);
	const uint64_t ticks = l.records[RECORD_TICK];

	ck_assert_uint_gt(next, l.tick);
	for (uint64_t tick = l.tick + 1; tick < next; tick++)
		live_look(&l, tick);
	live_read(&l);
	ck_assert_uint_eq(l.records[RECORD_TICK], ticks);
	live_look(&l, next);
	live_read(&l);
	ck_assert_uint_eq(l.records[RECORD_TICK], ticks + 1);
	l.tick = next;
}

TEST(capture_next_tick_is_the_next_tick_of_any_target)
{
	static const uint32_t rates[][2] = {{1, 1},    {1, 2},	  {2, 5},
					    {11, 101}, {97, 101}, {1, 1000}};

	threads(NULL);
	live_until_blocked(&l, l.pid);
	ck_assert_uint_eq(capture_next_tick(l.capture), l.tick + 1);
	for (size_t i = 0; i < array_size(rates); i++) {
		capture_rate(l.capture, LIVE_TARGET, rates[i][0], rates[i][1]);
		for (int k = 0; k < 300; k++)
			check_next_tick();
	}
	/* A process whose threads sleep skips ticks. One with an awake thread does not. */
	capture_rate(l.capture, LIVE_TARGET, 1, 1);
	check_next_tick();
	check_next_tick();
	ck_assert_uint_gt(capture_next_tick(l.capture), l.tick + 1);
	sleepers_wake(live_known(&l, l.pid));
	ck_assert_uint_le(capture_next_tick(l.capture), l.tick + 1);
	check_next_tick();
	ck_assert_uint_eq(live_missed(&l), 0);
	live_check_sum(&l);
	/* A target that leaves or has ended has work at the next tick, whatever its rate is. */
	capture_rate(l.capture, LIVE_TARGET, 1, 1000);
	ck_assert_uint_gt(capture_next_tick(l.capture), l.tick + 1);
	OK(capture_remove(l.capture, LIVE_TARGET));
	ck_assert_uint_le(capture_next_tick(l.capture), l.tick + 1);
}

/* Starts a process that ends with the test. */
static pid_t pause_child(int *ret_pidfd)
{
	const pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (pid == 0)
		(void)pause();
	*ret_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	ck_assert_int_ge(*ret_pidfd, 0);
	return pid;
}

/* The ticks of the slower target are among those of the faster one. */
TEST(ticks_of_slower_targets_are_among_those_of_the_fastest)
{
	static const uint32_t rates[][2] = {{13, 11}, {11, 13}, {101, 11}, {17, 17}, {97, 89}};
	static struct capture_counters counters;
	/* live.h reads records of LIVE_TARGET only. */
	static struct capture_sink sink;
	int pidfd;
	pid_t other;

	threads(NULL);
	OK(ring_writer_init(&sink.ring, 1 << 22));
	live_until_blocked(&l, l.pid);
	other = pause_child(&pidfd);
	OK(capture_add(l.capture, LIVE_TARGET + 1, other, pidfd, &sink, &counters, l.tick));
	for (size_t i = 0; i < array_size(rates); i++) {
		const uint64_t first = l.tick / 101 * 101 + 101;
		uint64_t wakes = 0, before, before_other;

		capture_rate(l.capture, LIVE_TARGET, rates[i][0], 101);
		capture_rate(l.capture, LIVE_TARGET + 1, rates[i][1], 101);
		live_look(&l, first);
		before = l.counters.ticks;
		before_other = counters.ticks;
		for (l.tick = first; l.tick < first + 101; wakes++) {
			/* No target skips ticks. */
			schedule_at_once(live_known(&l, l.pid)->target);
			schedule_at_once(live_known(&l, other)->target);
			l.tick = capture_next_tick(l.capture);
			live_look(&l, l.tick);
		}
		ck_assert_uint_eq(l.tick, first + 101);
		ck_assert_uint_eq(l.counters.ticks - before, rates[i][0]);
		ck_assert_uint_eq(counters.ticks - before_other, rates[i][1]);
		ck_assert_uint_eq(wakes, max_u64(rates[i][0], rates[i][1]));
	}
	OK(kill(other, SIGKILL));
}

/* The registers of a blocked thread's last stop are used for samples at the same place. */
TEST(registers_are_remembered_for_the_same_place)
{
	threads(NULL);
	live_until_blocked(&l, l.pid);
	live_ticks(&l, 1);
	ck_assert_uint_eq(live_thread(&l, l.pid)->flags & SAMPLE_REMEMBERED, 0);
	interrupt(l.pid);
	live_settle(&l);
	live_until_blocked(&l, l.pid);
	live_ticks(&l, 1);
	ck_assert_uint_eq(live_thread(&l, l.pid)->samples, 3);
	ck_assert_uint_ne(live_thread(&l, l.pid)->flags & SAMPLE_REMEMBERED, 0);
	live_check_sum(&l);
}
