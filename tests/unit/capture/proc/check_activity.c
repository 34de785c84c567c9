#include "lib/capture/proc/activity.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "tests/unit/suite.h"

static struct activity_place place;

TEST(parses_a_blocked_call)
{
	ck_assert_int_eq(activity_parse("232 0x4 0x7ffc1 0x40 0xffffffff 0x0 "
					"0x8 0x7ffe5b3a1d58 0x7f1c2a3b4c5d\n",
					&place),
			 ACTIVITY_BLOCKED);
	ck_assert_int_eq(place.call, 232);
	ck_assert_uint_eq(place.arguments[0], 4);
	ck_assert_uint_eq(place.sp, UINT64_C(0x7ffe5b3a1d58));
	ck_assert_uint_eq(place.pc, UINT64_C(0x7f1c2a3b4c5d));
}

TEST(parses_a_page_fault)
{
	ck_assert_int_eq(activity_parse("-1 0x7ffe5b3a1d58 0x401000\n", &place), ACTIVITY_BLOCKED);
	ck_assert_int_eq(place.call, -1);
	ck_assert_uint_eq(place.sp, UINT64_C(0x7ffe5b3a1d58));
	ck_assert_uint_eq(place.pc, UINT64_C(0x401000));
}

TEST(parses_running)
{
	ck_assert_int_eq(activity_parse("running\n", &place), ACTIVITY_RUNNING);
}

/* The lines of zombies, incomplete lines, and other text. The place is not written. */
TEST(any_other_line_means_dead)
{
	static const char *const lines[] = {
		"-1 0x0 0x0\n", "",
		"\n",		"runner\n",
		"232\n",	"232 0x4 0x7ffc1 0x40 0xffffffff 0x0 0x8 0x7ffe5b3a1d58\n",
		"-1\n",		"-1 0x7ffe5b3a1d58\n",
		"x 0x1 0x2\n",
	};

	place = (struct activity_place){.call = 1, .sp = 2, .pc = 3};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		ck_assert_int_eq(activity_parse(lines[i], &place), ACTIVITY_DEAD);
		ck_assert_uint_eq(place.sp, 2);
		ck_assert_uint_eq(place.pc, 3);
	}
}

/* A thread of the test process, blocked in read(2) until it gets a byte. */
struct sleeper {
	pthread_t thread;
	int fds[2];
	atomic_int tid;
	atomic_int rounds;
};

static void *sleep_in_read(void *arg)
{
	struct sleeper *s = arg;
	char byte;

	s->tid = (int)syscall(SYS_gettid);
	while (read(s->fds[0], &byte, 1) == 1)
		s->rounds++;
	return NULL;
}

static int open_proc(void)
{
	int fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static void until_blocked(const struct activity *a)
{
	while (activity_look(a, &place) != ACTIVITY_BLOCKED || place.call != SYS_read)
		;
}

TEST(a_mark_changes_when_a_thread_has_run)
{
	struct sleeper s = {.tid = 0};
	struct activity_mark before, same, after;
	struct activity a;
	int proc = open_proc();

	OK(pipe2(s.fds, O_CLOEXEC));
	OK(pthread_create(&s.thread, NULL, sleep_in_read, &s));
	while (s.tid == 0)
		;
	OK(activity_open(&a, proc, (uint32_t)s.tid));
	until_blocked(&a);
	ck_assert(activity_mark(&a, &before));
	for (int i = 0; i < 1000; i++) {
		ck_assert(activity_mark(&a, &same));
		ck_assert_uint_eq(same.run_ns, before.run_ns);
		ck_assert_uint_eq(same.slices, before.slices);
	}
	ck_assert_int_eq(write(s.fds[1], "", 1), 1);
	while (s.rounds == 0)
		;
	until_blocked(&a);
	ck_assert(activity_mark(&a, &after));
	ck_assert_uint_gt(after.slices, before.slices);
	ck_assert_uint_gt(after.run_ns, before.run_ns);

	(void)close(s.fds[1]);
	OK(pthread_join(s.thread, NULL));
	/* A thread that was joined can still be in /proc for a moment. */
	while (activity_look(&a, &place) != ACTIVITY_DEAD)
		;
	while (activity_mark(&a, &after))
		;
	activity_close(&a);
	ck_assert_int_eq(a.schedstat_fd, -1);
	ck_assert_int_eq(a.syscall_fd, -1);
	activity_close(&a);
	(void)close(s.fds[0]);
	(void)close(proc);
}

static atomic_int busy_tid;
static atomic_bool ending;

static void *keep_busy(void *unused)
{
	busy_tid = (int)syscall(SYS_gettid);
	while (!ending)
		;
	return unused;
}

TEST(a_busy_thread_is_running)
{
	struct activity a;
	pthread_t thread;
	int proc = open_proc();

	OK(pthread_create(&thread, NULL, keep_busy, NULL));
	while (busy_tid == 0)
		;
	OK(activity_open(&a, proc, (uint32_t)busy_tid));
	/* The file shows "running" whether the thread is on a processor or waits for one. */
	for (int i = 0; i < 1000; i++)
		ck_assert_int_eq(activity_look(&a, &place), ACTIVITY_RUNNING);
	ending = true;
	OK(pthread_join(thread, NULL));
	activity_close(&a);
	(void)close(proc);
}

TEST(opening_the_files_of_no_thread_fails)
{
	struct activity a;
	int proc = open_proc();

	/* 0 is the number of the idle task, which /proc does not have. */
	ck_assert_int_eq(activity_open(&a, proc, 0), -ESRCH);
	ck_assert_int_eq(a.schedstat_fd, -1);
	ck_assert_int_eq(a.syscall_fd, -1);
	(void)close(proc);
}

/* On a kernel without schedstat all numbers are 0, which is no mark. */
TEST(without_schedstat_there_is_no_mark)
{
	struct activity a = {.schedstat_fd = suite_file("0 0 0\n"), .syscall_fd = -1};
	struct activity_mark mark;

	ck_assert(!activity_mark(&a, &mark));
	ck_assert_int_eq(pwrite(a.schedstat_fd, "7 8 9\n", 6, 0), 6);
	ck_assert(activity_mark(&a, &mark));
	ck_assert_uint_eq(mark.run_ns, 7);
	ck_assert_uint_eq(mark.wait_ns, 8);
	ck_assert_uint_eq(mark.slices, 9);
	activity_close(&a);
}

#define US NS_PER_US

/*
 * A reading of a thread around an interrupt: what happened since the first mark. The tick was due
 * at 0, the tracer came at 60 us, looked at 120 us, and handled the stop at stop_us.
 */
struct reading {
	const char *what;
	bool was_blocked, stopped_waiting, woken;
	/* Run time, wait time and slices from the first mark to the look, and from there to the
	 * stop. */
	unsigned int ran_us, waited_us, slices;
	unsigned int then_ran_us, then_waited_us, then_slices;
	unsigned int stop_us;
	enum activity_at_tick result;
};

static enum activity_at_tick result_of(const struct reading *r)
{
	const uint64_t due_ns = NS_PER_SEC;
	const struct activity_mark first = {
		.run_ns = 7 * NS_PER_SEC, .wait_ns = 40 * NS_PER_MS, .slices = 11};
	const struct activity_mark look = {
		.run_ns = first.run_ns + r->ran_us * US,
		.wait_ns = first.wait_ns + r->waited_us * US,
		.slices = first.slices + r->slices,
	};
	const struct activity_readings readings = {
		.due_ns = due_ns,
		.came_ns = due_ns + 60 * US,
		.first = first,
		.was_blocked = r->was_blocked,
		.interrupt = look,
		.interrupt_ns = due_ns + 120 * US,
		.stop = {.run_ns = look.run_ns + r->then_ran_us * US,
			 .wait_ns = look.wait_ns + r->then_waited_us * US,
			 .slices = look.slices + r->then_slices},
		.stop_ns = due_ns + r->stop_us * US,
		.stopped_waiting = r->stopped_waiting,
		.woken = r->woken,
	};

	return activity_at_tick(&readings);
}

/* The rows of the table in activity.h, in their order, with both sides of each limit. */
static const struct reading table[] = {
	{.what = "naps: sleeps",
	 .was_blocked = true,
	 .stopped_waiting = true,
	 .stop_us = 160,
	 .result = ACTIVITY_WAITED},
	{.what = "naps: woke, ran and fell asleep between the first mark and the look",
	 .was_blocked = true,
	 .stopped_waiting = true,
	 .ran_us = 9,
	 .slices = 1,
	 .stop_us = 160,
	 .result = ACTIVITY_WAITED},
	{.what = "queues.py: woken between the look and the stop",
	 .was_blocked = true,
	 .then_ran_us = 9,
	 .then_slices = 1,
	 .stop_us = 160,
	 .result = ACTIVITY_MAY_HAVE_RUN},
	{.what = "busy: has a processor. schedstat of a running thread may lag",
	 .stop_us = 160,
	 .result = ACTIVITY_RAN},
	{.what = "busy: has a processor",
	 .then_ran_us = 4000,
	 .stop_us = 160,
	 .result = ACTIVITY_RAN},
	{.what = "handoff: in a call that waits at the stop, with its processor",
	 .stopped_waiting = true,
	 .then_ran_us = 40,
	 .stop_us = 160,
	 .result = ACTIVITY_RAN},
	{.what = "busy, full machine: queued 300 us before the tick",
	 .then_waited_us = 5300,
	 .then_slices = 1,
	 .stop_us = 5000,
	 .result = ACTIVITY_WAS_READY},
	{.what = "PostgreSQL: fdatasync(2) sleeps several times before it ends",
	 .then_ran_us = 60,
	 .then_waited_us = 1900,
	 .then_slices = 3,
	 .stop_us = 1500,
	 .stopped_waiting = true,
	 .result = ACTIVITY_WAS_READY},
	{.what = "busy, full machine: got a processor just before the look",
	 .waited_us = 400,
	 .slices = 1,
	 .then_ran_us = 40,
	 .stop_us = 160,
	 .result = ACTIVITY_WAS_READY},
	{.what = "handoff: got a processor after it was queued at the tick",
	 .waited_us = 100,
	 .slices = 1,
	 .then_ran_us = 40,
	 .stop_us = 160,
	 .result = ACTIVITY_RAN},
	{.what = "pool: had two processors between the look and the stop",
	 .then_ran_us = 40,
	 .then_waited_us = 300,
	 .then_slices = 2,
	 .stop_us = 500,
	 .result = ACTIVITY_MAY_HAVE_RUN},
	{.what = "pool: the same in a call that has waited",
	 .stopped_waiting = true,
	 .woken = true,
	 .then_ran_us = 40,
	 .then_waited_us = 300,
	 .then_slices = 2,
	 .stop_us = 300,
	 .result = ACTIVITY_MAY_HAVE_RUN},
	{.what = "naps: the tracer's timer woke it, too",
	 .stopped_waiting = true,
	 .woken = true,
	 .then_waited_us = 150,
	 .then_slices = 1,
	 .stop_us = 160,
	 .result = ACTIVITY_WAITED},
	{.what = "busy: the tracer took its processor",
	 .then_waited_us = 150,
	 .then_slices = 1,
	 .stop_us = 160,
	 .result = ACTIVITY_MAY_HAVE_RUN},
	{.what = "naps, full machine: queued 300 us before the tick, by its timer",
	 .stopped_waiting = true,
	 .woken = true,
	 .then_waited_us = 5300,
	 .then_slices = 1,
	 .stop_us = 5000,
	 .result = ACTIVITY_WAS_READY},
	{.what = "handoff: lost its processor after the look",
	 .stopped_waiting = true,
	 .then_ran_us = 20,
	 .then_waited_us = 40,
	 .then_slices = 1,
	 .stop_us = 400,
	 .result = ACTIVITY_MAY_HAVE_RUN},
};

TEST(the_readings_of_each_row_have_its_result)
{
	for (size_t i = 0; i < array_size(table); i++)
		ck_assert_msg(result_of(&table[i]) == table[i].result, "%s: %d", table[i].what,
			      result_of(&table[i]));
}

/* The tracer comes 60 us after the tick, and looks 400 us later, since it has many threads. */
TEST(a_thread_that_was_queued_in_between_was_woken_or_preempted)
{
	struct activity_readings r = {
		.due_ns = NS_PER_SEC,
		.came_ns = NS_PER_SEC + 60 * US,
		.first = {.run_ns = 1, .wait_ns = 1, .slices = 1},
		.interrupt = {.run_ns = 1, .wait_ns = 1, .slices = 1},
		.interrupt_ns = NS_PER_SEC + 460 * US,
		.stop = {.run_ns = 1 + 10 * US, .wait_ns = 1 + 200 * US, .slices = 2},
		.stop_ns = NS_PER_SEC + 500 * US,
	};

	ck_assert_int_eq(activity_at_tick(&r), ACTIVITY_MAY_HAVE_RUN);
	r.stopped_waiting = true;
	ck_assert_int_eq(activity_at_tick(&r), ACTIVITY_WAITED);
	/* Its earlier waits tell nothing about this one. */
	r.first.wait_ns = 0;
	r.interrupt.slices = 2;
	r.interrupt.wait_ns = 1 + 9 * NS_PER_MS;
	r.stop.slices = 3;
	r.stop.wait_ns = r.interrupt.wait_ns + 200 * US;
	ck_assert_int_eq(activity_at_tick(&r), ACTIVITY_WAITED);
}
