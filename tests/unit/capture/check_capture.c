#include "lib/capture/capture.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/capture/detach.h"
#include "lib/capture/sample.h"
#include "lib/capture/state.h"
#include "lib/capture/tracees.h"
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

FIXTURE(NULL, tear_down)

TEST(a_blocked_thread_is_never_stopped)
{
	pid_t tid;

	threads(NULL);
	tid = (pid_t)live_ask(&l, "asleep 1", "ok");
	live_until_blocked(&l, tid);
	live_until_blocked(&l, l.pid);
	live_ticks(&l, 100);
	ck_assert_uint_eq(l.counters.stops, 0);
	ck_assert_uint_eq(l.counters.captured, 2);
	ck_assert_uint_eq(l.counters.repeated, 198);
	ck_assert_uint_eq(live_thread(&l, tid)->samples, 1);
	ck_assert_uint_eq(live_thread(&l, tid)->running, 0);
	ck_assert_uint_gt(live_thread(&l, tid)->stack_size, 0);
	live_check_sum(&l);
}

TEST(busy_threads_are_captured_at_every_tick)
{
	pid_t tid;

	threads(NULL);
	tid = (pid_t)live_ask(&l, "busy 3", "ok");
	live_until_blocked(&l, l.pid);
	live_ticks(&l, 100);
	ck_assert_uint_eq(live_thread(&l, tid)->samples, 100);
	ck_assert_uint_eq(l.counters.expected, 400);
	ck_assert_uint_eq(l.counters.captured, 301);
	ck_assert_uint_eq(l.counters.repeated, 99);
	ck_assert_uint_eq(l.counters.stops, 300);
	ck_assert_uint_eq(live_missed(&l), 0);
	live_check_sum(&l);
}

/* Many ticks come before each stop. */
TEST(ticks_before_a_stop_are_filled)
{
	threads(NULL);
	(void)live_ask(&l, "busy 4", "ok");
	l.tick_ns = 1;
	do {
		live_tick(&l);
		live_patience();
	} while (l.counters.filled < 1000 || l.counters.captured < 1000);
	live_settle(&l);
	ck_assert_uint_eq(live_missed(&l), 0);
	live_check_sum(&l);
}

/* Late ticks, combined with threads that are made, run, sleep and end. */
TEST(the_sum_of_counters_holds_with_late_ticks_and_changing_threads)
{
	threads(NULL);
	for (int round = 0; round < 20; round++) {
		(void)live_ask(&l, "busy 2", "ok");
		live_tick_late(&l, 3);
		(void)live_ask(&l, "asleep 2", "ok");
		live_tick(&l);
		live_tick_late(&l, 7);
		(void)live_ask(&l, "storm 1", "ok");
		live_tick(&l);
		(void)live_ask(&l, "join", "ok");
		live_tick(&l);
		live_settle(&l);
		live_check_sum(&l);
	}
	ck_assert_uint_gt(l.counters.missed[MISSED_LATE], 0);
	ck_assert_uint_eq(l.records[RECORD_TICK], 20 * 5);
	ck_assert_uint_eq(l.counters.ticks, 20 * 13);
}

TEST(new_threads_are_sampled_and_their_ends_are_recorded)
{
	pid_t tid;

	threads(NULL);
	live_ticks(&l, 3);
	tid = (pid_t)live_ask(&l, "asleep 20", "ok");
	/* The first stop of each new thread comes before the program can answer. */
	live_ticks(&l, 1);
	ck_assert_uint_eq(l.counters.threads, 21);
	ck_assert_uint_eq(live_thread(&l, tid)->samples, 1);
	ck_assert(!live_thread(&l, tid)->is_main);
	ck_assert(live_thread(&l, l.pid)->is_main);
	(void)live_ask(&l, "join", "ok");
	/* The end is recorded at the next tick, because the last sample is valid until then. */
	while (l.records[RECORD_EXIT] < 20)
		live_ticks(&l, 1);
	ck_assert(live_thread(&l, tid)->exited);
	live_ticks(&l, 1);
	ck_assert_uint_eq(l.counters.threads, 1);
	live_check_sum(&l);
}

/* Stops every thread, and handles no status. Returns the number of threads. */
static unsigned int stop_all(void)
{
	char path[64];
	struct dirent *entry;
	unsigned int n = 0;
	siginfo_t info;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)l.pid);
	dir = opendir(path);
	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)) != NULL) {
		unsigned long tid = strtoul(entry->d_name, NULL, 10);

		if (tid == 0)
			continue;
		OK(ptrace(PTRACE_INTERRUPT, tid, NULL, NULL));
		OK(waitid(P_PID, (id_t)tid, &info, WSTOPPED | WNOWAIT | __WALL));
		n++;
	}
	(void)closedir(dir);
	return n;
}

/*
 * One call handles a limited number of statuses, so that many of them do not keep the tracer from
 * its other work.
 */
TEST(one_call_handles_a_limited_number_of_statuses)
{
	uint64_t before;
	unsigned int n;

	threads(NULL);
	(void)live_ask(&l, "asleep 400", "ok");
	live_ticks(&l, 1);
	before = l.counters.event_stops;
	n = stop_all();
	ck_assert_uint_eq(n, 401);
	live_reap(&l);
	ck_assert(l.more);
	ck_assert_uint_lt(l.counters.event_stops, before + n);
	live_reap(&l);
	ck_assert(!l.more);
	ck_assert_uint_eq(l.counters.event_stops, before + n);
}

/*
 * The thread that was attached to first is the last one that waitpid(-1) returns. If it was
 * interrupted, its stop is handled first.
 */
TEST(stops_of_interrupted_threads_are_handled_before_new_threads)
{
	siginfo_t info = {.si_pid = 0};
	struct thread *th;
	pid_t tid;

	threads(NULL);
	tid = (pid_t)live_ask(&l, "asleep 1", "ok");
	(void)live_ask(&l, "asleep 399", "ok");
	th = tracees_find(l.capture, (uint32_t)tid);
	ck_assert_ptr_nonnull(th);
	(void)stop_all();
	tracees_set_pending(th, l.tick, l.tick * l.tick_ns);
	live_reap(&l);
	ck_assert(l.more);
	ck_assert_uint_eq(capture_pending(l.capture), 0);
	/* The thread's stop is handled, although 144 others are not. */
	OK(waitid(P_PID, (id_t)tid, &info, WSTOPPED | WNOWAIT | WNOHANG | __WALL));
	ck_assert_int_eq(info.si_pid, 0);
	live_reap(&l);
	ck_assert(!l.more);
}

TEST(record_end_is_the_last_record)
{
	int status;

	threads(NULL);
	(void)live_ask(&l, "busy 2", "ok");
	live_ticks(&l, 5);
	close_fd(&l.in);
	while (l.gone == 0)
		live_wait(&l);
	ck_assert_uint_eq(l.gone, 1);
	ck_assert(l.ended);
	ck_assert_uint_eq(l.counters.threads, 0);
	live_tick(&l);
	live_check_sum(&l);
	/* No tracee is left. In this test the tracer is also the parent. */
	while (waitpid(-1, &status, __WALL) > 0)
		ck_assert(!WIFSTOPPED(status));
	ck_assert_int_eq(errno, ECHILD);
}

/* The target is killed at 200 random moments. */
TEST(a_kill_at_any_moment_ends_the_target)
{
	uint32_t random = 1;

	for (int round = 0; round < 200; round++) {
		unsigned int n;

		threads(round % 4 == 0 ? "leaderless" : NULL);
		(void)live_ask(&l, "busy 2", "ok");
		if (round % 3 == 0)
			(void)live_ask(&l, "storm 1", "ok");
		random = random * 1664525 + 1013904223;
		n = random >> 28;
		while (n-- > 0)
			live_tick(&l);
		OK(kill(l.pid, SIGKILL));
		n = random >> 24 & 3;
		while (n-- > 0)
			live_tick(&l);
		while (l.gone == 0)
			live_wait(&l);
		ck_assert(l.ended);
		live_check_sum(&l);
		live_end(&l);
	}
	threads(NULL);
}

TEST(finishing_lets_the_target_run_on)
{
	threads(NULL);
	(void)live_ask(&l, "busy 2", "ok");
	live_ticks(&l, 5);
	live_tick(&l);
	live_settle(&l);
	ck_assert(capture_finish(l.capture));
	live_read(&l);
	ck_assert_uint_eq(l.gone, 1);
	ck_assert(l.ended);
	ck_assert_int_eq(live_ask(&l, "join", "ok"), 0);
	ck_assert_uint_eq(l.counters.expected, l.counters.captured + l.counters.repeated +
						       l.counters.filled + live_missed(&l));
}

TEST(samples_under_way_at_the_end_count_as_missed)
{
	threads(NULL);
	(void)live_ask(&l, "busy 4", "ok");
	do {
		live_tick(&l);
		live_patience();
	} while (capture_pending(l.capture) == 0);
	ck_assert(capture_finish(l.capture));
	live_check_sum(&l);
	ck_assert_uint_gt(l.counters.missed[MISSED_NOT_STOPPED], 0);
	/* The threads are interrupted nevertheless, and their stops are handled. */
	ck_assert_int_eq(live_ask(&l, "join", "ok"), 0);
}

TEST(adding_an_ended_process_fails)
{
	int fds[2];

	threads(NULL);
	l.child = fork();
	if (l.child == 0)
		_exit(0);
	fds[0] = (int)syscall(SYS_pidfd_open, l.child, 0);
	ck_assert_int_eq(waitpid(l.child, NULL, 0), l.child);
	ck_assert_int_eq(
		capture_add(l.capture, LIVE_TARGET, l.child, fds[0], &l.sink, &l.counters, 0),
		-ESRCH);
	/* The pid of another process: the pidfd shows that it is not the same. */
	ck_assert_int_eq(
		capture_add(l.capture, LIVE_TARGET, getpid(), fds[0], &l.sink, &l.counters, 0),
		-ESRCH);
	(void)close(fds[0]);
	l.child = l.pid;
}

TEST(adding_a_zombie_fails)
{
	pid_t zombie;
	siginfo_t info;
	int pidfd;

	threads(NULL);
	zombie = fork();
	if (zombie == 0)
		_exit(0);
	pidfd = (int)syscall(SYS_pidfd_open, zombie, 0);
	OK(waitid(P_PID, (id_t)zombie, &info, WEXITED | WNOWAIT));
	ck_assert_int_eq(
		capture_add(l.capture, LIVE_TARGET, zombie, pidfd, &l.sink, &l.counters, 0),
		-ESRCH);
	ck_assert_int_eq(waitpid(zombie, NULL, 0), zombie);
	(void)close(pidfd);
}

TEST(adding_a_process_with_another_tracer_fails)
{
	pid_t tracer;

	live_prepare(&l);
	tracer = live_start_tracer(l.pid);
	ck_assert_int_eq(live_add(&l), -EBUSY);
	ck_assert_uint_eq(l.counters.threads, 0);
	OK(kill(tracer, SIGKILL));
	ck_assert_int_eq(waitpid(tracer, NULL, 0), tracer);
	/* The other tracer has detached, so capture can attach. */
	OK(live_add(&l));
	ck_assert_int_eq(live_status(l.pid, "TracerPid:"), getpid());
}

static unsigned int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir) != NULL)
		n++;
	(void)closedir(dir);
	return n;
}

/* No descriptor stays open after targets and threads have ended. */
TEST(no_descriptor_stays_open_after_the_targets)
{
	unsigned int before = descriptors();

	for (int round = 0; round < 3; round++) {
		threads(NULL);
		(void)live_ask(&l, "busy 3", "ok");
		live_ticks(&l, 3);
		(void)live_ask(&l, "join", "ok");
		(void)live_ask(&l, "asleep 9", "ok");
		live_ticks(&l, 3);
		live_end(&l);
	}
	ck_assert_uint_eq(descriptors(), before);
	threads(NULL);
}
