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
	ck_assert_uint_eq(place.argument, 4);
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

#define MS NS_PER_MS

/*
 * The moments of a thread's tick: it was due at 100 ms, and the tracer came then, looked at the
 * thread at 103 ms, and handled its stop at 110 ms.
 */
static const struct activity_moments moments = {
	.due_ns = 100 * MS,
	.came_ns = 100 * MS,
	.look_ns = 103 * MS,
	.not_stopped_ns = 103 * MS,
	.stop_ns = 110 * MS,
};

/*
 * Returns the result of activity_ran() if the run time, the wait time and the slices grow by these
 * values from the look to the stop.
 */
static enum activity_run ran(uint64_t ran_ns, uint64_t waited_ns, uint64_t slices,
			     const struct activity_moments *when, bool only_waits)
{
	const struct activity_mark before = {
		.run_ns = 7 * NS_PER_SEC, .wait_ns = 40 * NS_PER_MS, .slices = 11};
	const struct activity_mark now = {
		.run_ns = before.run_ns + ran_ns,
		.wait_ns = before.wait_ns + waited_ns,
		.slices = before.slices + slices,
	};

	return activity_ran(&before, &now, when, only_waits);
}

/*
 * Unchanged values do not mean that the thread has not run: schedstat of a running thread may lag.
 */
TEST(equal_slices_mean_that_the_thread_ran)
{
	ck_assert_int_eq(ran(0, 0, 0, &moments, false), ACTIVITY_RAN);
	ck_assert_int_eq(ran(4 * MS, 0, 0, &moments, false), ACTIVITY_RAN);
	ck_assert_int_eq(ran(4 * MS, 0, 0, &moments, true), ACTIVITY_RAN);
}

TEST(a_thread_that_waited_since_before_the_look_did_not_run)
{
	/* The thread has waited since just after the look. */
	ck_assert_int_eq(ran(0, 7 * MS, 1, &moments, false), ACTIVITY_MAY_HAVE_RUN);
	ck_assert_int_eq(ran(3 * MS, 4 * MS, 1, &moments, false), ACTIVITY_MAY_HAVE_RUN);
	/* At the look the thread had waited for one or two milliseconds. */
	ck_assert_int_eq(ran(0, 8 * MS, 1, &moments, false), ACTIVITY_WAITED);
	ck_assert_int_eq(ran(0, 9 * MS, 1, &moments, false), ACTIVITY_WAITED);
	/* The tracer took the thread's processor when the tick came. */
	ck_assert_int_eq(ran(0, 10 * MS, 1, &moments, false), ACTIVITY_MAY_HAVE_RUN);
	/* Another thread took the processor before the tick was due. */
	ck_assert_int_eq(ran(0, 11 * MS, 1, &moments, false), ACTIVITY_WAITED);
}

TEST(a_thread_that_slept_after_the_look_did_not_run)
{
	struct activity_moments when = moments;

	when.not_stopped_ns = 106 * MS;
	/* In the 3 ms in which it had not stopped, the thread slept for 1 ms. */
	ck_assert_int_eq(ran(0, 2 * MS, 1, &when, false), ACTIVITY_WAITED);
	ck_assert_int_eq(ran(MS, MS, 1, &when, false), ACTIVITY_WAITED);
	ck_assert_int_eq(ran(0, 3 * MS, 1, &when, false), ACTIVITY_MAY_HAVE_RUN);
	/* The thread was in a long system call, and lost its processor at the end of the call. */
	ck_assert_int_eq(ran(2 * MS, MS, 1, &when, false), ACTIVITY_MAY_HAVE_RUN);
}

/* A thread in a sleep waits for the tracer's processor because the same timer has woken both. */
TEST(a_call_that_only_waits_does_not_count_as_running)
{
	ck_assert_int_eq(ran(0, 7 * MS, 1, &moments, true), ACTIVITY_WAITED);
	ck_assert_int_eq(ran(0, 10 * MS, 1, &moments, true), ACTIVITY_WAITED);
}
