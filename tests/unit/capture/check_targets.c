#include "lib/capture/targets.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "lib/capture/sample.h"
#include "lib/capture/state.h"
#include "lib/capture/tracees.h"
#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

/* More than the ticks between two counts of the threads. */
#define SCAN_SOON 40

static struct live l;

static void threads(const char *argument)
{
	live_begin(&l, "cap_threads", argument, NULL);
}

/* Starts a target whose main thread has ended before capture attaches. */
static void leaderless(void)
{
	live_prepare_leaderless(&l);
	OK(live_add(&l));
}

static void tear_down(void)
{
	live_end(&l);
}

/* Checks what must be true after an exec, however the exec happened. */
static void check_exec(void)
{
	live_say(&l, "exec");
	ck_assert_int_eq(live_answer(&l, "ready"), l.pid);
	live_settle(&l);
	ck_assert_uint_eq(l.execs, 1);
	ck_assert_uint_eq(l.records[RECORD_EXEC], 1);
	live_until_blocked(&l, l.pid);
	live_ticks(&l, 10);
	ck_assert_uint_eq(l.counters.threads, 1);
	ck_assert_uint_eq(live_thread(&l, l.pid)->samples, 1);
	ck_assert(!live_thread(&l, l.pid)->exited);
	live_check_sum(&l);
	/* The new program ends as any other does. */
	close_fd(&l.in);
	while (l.gone == 0)
		live_wait(&l);
	ck_assert(l.ended);
	live_check_sum(&l);
}

FIXTURE(NULL, tear_down)

TEST(an_exec_ends_all_threads_but_the_leader)
{
	threads(NULL);
	(void)live_ask(&l, "busy 2", "ok");
	(void)live_ask(&l, "asleep 3", "ok");
	live_ticks(&l, 5);
	check_exec();
}

TEST(an_exec_while_all_threads_are_interrupted_is_handled)
{
	threads(NULL);
	(void)live_ask(&l, "busy 4", "ok");
	live_say(&l, "exec");
	for (; l.execs == 0; live_patience())
		live_tick(&l);
	ck_assert_int_eq(live_answer(&l, "ready"), l.pid);
	live_settle(&l);
	live_check_sum(&l);
	live_ticks(&l, 2);
	ck_assert_uint_eq(l.counters.threads, 1);
	live_check_sum(&l);
}

/* Ends the main thread, and waits until another thread reads the commands. */
static void leave(void)
{
	l.first = (pid_t)live_ask(&l, "leave", "ready");
	live_until_state(&l, l.pid, 'Z');
	live_until_blocked(&l, l.first);
}

TEST(an_exec_after_the_leaders_death_under_capture_is_handled)
{
	threads(NULL);
	live_ticks(&l, 5);
	leave();
	live_ticks(&l, 5);
	check_exec();
}

TEST(an_exec_after_the_leaders_death_before_capture_is_handled)
{
	leaderless();
	live_ticks(&l, 5);
	ck_assert_uint_eq(l.counters.threads, 1);
	check_exec();
}

TEST(a_dead_leader_has_no_expected_samples)
{
	threads(NULL);
	live_ticks(&l, 10);
	leave();
	live_ticks(&l, 50);
	/* The thread that reads the commands now is expected in its place. */
	ck_assert_uint_eq(l.counters.expected, 60);
	ck_assert(live_thread(&l, l.pid)->exited);
	ck_assert_uint_eq(live_thread(&l, l.first)->samples, 1);
	live_check_sum(&l);
}

TEST(a_dead_leader_causes_no_further_scan)
{
	uint64_t scanned;

	leaderless();
	live_ticks(&l, 20);
	ck_assert_uint_eq(l.capture->targets->target->scan.n_left_out, 1);
	/* A scan sets when the next one may be made. */
	scanned = l.capture->targets->target->scan.retry_tick;
	live_ticks(&l, 40);
	ck_assert_uint_eq(l.capture->targets->target->scan.retry_tick, scanned);
	live_check_sum(&l);
}

/* A dead leader's tid is still the pid, but the leader has no memory any more. */
TEST(threads_of_a_dead_leader_are_sampled_with_stacks)
{
	pid_t tid;

	leaderless();
	tid = (pid_t)live_ask(&l, "busy 1", "ok");
	live_until_blocked(&l, l.first);
	live_ticks(&l, 5);
	ck_assert_uint_gt(live_thread(&l, tid)->stack_size, 0);
	ck_assert_uint_gt(live_thread(&l, l.first)->stack_size, 0);
}

TEST(a_process_cloned_without_sigchld_is_detached)
{
	pid_t pid;

	threads(NULL);
	for (int i = 0; i < 10; i++) {
		pid = (pid_t)live_ask(&l, "clone", "ok");
		for (; live_status(pid, "TracerPid:") != 0; live_patience())
			live_reap(&l);
		/* The process is in pause(2), and not in a ptrace-stop. */
		live_until_state(NULL, pid, 'S');
		OK(kill(pid, SIGKILL));
	}
	live_ticks(&l, 2);
	ck_assert_uint_eq(l.counters.threads, 1);
	live_check_sum(&l);
}

TEST(children_are_not_followed)
{
	threads(NULL);
	for (int i = 0; i < 50; i++) {
		ck_assert_int_gt(live_ask(&l, "child", "ok"), 0);
		live_tick(&l);
	}
	live_settle(&l);
	ck_assert_uint_eq(l.counters.threads, 1);
	live_check_sum(&l);
}

TEST(the_table_is_correct_while_threads_start_and_end_fast)
{
	threads(NULL);
	(void)live_ask(&l, "storm 4", "ok");
	for (; l.counters.event_stops < 2000; live_patience())
		live_tick(&l);
	(void)live_ask(&l, "join", "ok");
	live_settle(&l);
	live_ticks(&l, 1);
	ck_assert_uint_eq(l.counters.threads, 1);
	live_check_sum(&l);
}

/*
 * Another tracer has one of the threads. Its samples count as missed, until that tracer detaches
 * and a scan attaches to the thread.
 */
TEST(a_refused_thread_counts_as_missed)
{
	pid_t tid, tracer;

	live_prepare(&l);
	tid = (pid_t)live_ask(&l, "asleep 1", "ok");
	tracer = live_start_tracer(tid);
	OK(live_add(&l));
	live_ticks(&l, 50);
	ck_assert_uint_eq(l.counters.expected, 100);
	ck_assert_uint_eq(l.counters.missed[MISSED_NOT_ATTACHED], 50);
	live_check_sum(&l);
	OK(kill(tracer, SIGKILL));
	while (live_status(tid, "TracerPid:") != 0)
		live_patience();
	live_ticks(&l, SCAN_SOON);
	ck_assert_int_eq(live_status(tid, "TracerPid:"), getpid());
	ck_assert_uint_eq(live_thread(&l, tid)->samples, 1);
	live_check_sum(&l);
}

/*
 * The last thread in the table ends, while a thread that is not in it yet is alive, as before its
 * first stop.
 */
TEST(the_death_of_the_last_known_thread_need_not_end_the_target)
{
	leaderless();
	(void)live_ask(&l, "asleep 1", "ok");
	live_ticks(&l, 1);
	tracees_remove(tracees_find(l.capture, (uint32_t)l.first), MISSED_EXITED);
	(void)live_ask(&l, "join", "ok");
	while (live_status(l.first, "Threads:") > 2)
		live_wait(&l);
	live_reap(&l);
	ck_assert_uint_eq(l.gone, 0);
	do {
		live_ticks(&l, 1);
		live_patience();
	} while (l.counters.threads == 0);
	ck_assert_uint_eq(l.counters.threads, 1);
	ck_assert_uint_eq(live_thread(&l, l.first)->last_sample_tick, l.tick);
	live_check_sum(&l);
}

TEST(a_thread_not_added_for_lack_of_descriptors_is_added_later)
{
	pid_t tid;

	threads(NULL);
	live_ticks(&l, 1);
	live_take_descriptors();
	tid = (pid_t)live_ask(&l, "asleep 1", "ok");
	live_ticks(&l, 1);
	ck_assert_uint_eq(l.counters.threads, 1);
	live_give_descriptors();
	live_ticks(&l, SCAN_SOON);
	ck_assert_uint_eq(l.counters.threads, 2);
	ck_assert_uint_eq(live_thread(&l, tid)->samples, 1);
	live_check_sum(&l);
}

/* The thread of the new program is the only one, and cannot be adopted at once. */
TEST(an_exec_during_a_lack_of_descriptors_does_not_end_the_target)
{
	threads(NULL);
	live_ticks(&l, 2);
	live_say(&l, "exec");
	live_take_descriptors();
	while (l.execs == 0)
		live_wait(&l);
	ck_assert_uint_eq(l.capture->targets->target->threads.n, 0);
	live_tick(&l);
	live_tick(&l);
	ck_assert_uint_eq(l.gone, 0);
	live_give_descriptors();
	ck_assert_int_eq(live_answer(&l, "ready"), l.pid);
	for (; l.counters.threads == 0; live_patience())
		live_tick(&l);
	live_until_blocked(&l, l.pid);
	live_ticks(&l, 3);
	ck_assert_uint_eq(l.gone, 0);
	ck_assert_uint_eq(l.execs, 1);
	ck_assert_uint_gt(live_thread(&l, l.pid)->samples, 0);
	live_check_sum(&l);
}

FIXTURE(NULL, NULL)

TEST(the_last_target_takes_the_place_of_a_removed_one)
{
	struct capture c = {0};
	struct traced_process *t[4];
	size_t n = 0;

	for (size_t i = 0; i < array_size(t); i++)
		t[i] = live_bare_target(&c);
	targets_free(t[1]);
	ck_assert_ptr_eq(state_next(&c, NULL), t[0]);
	ck_assert_ptr_eq(state_next(&c, t[0]), t[3]);
	ck_assert_ptr_eq(state_next(&c, t[3]), t[2]);
	ck_assert_ptr_null(state_next(&c, t[2]));
	targets_free(t[2]);
	targets_free(t[0]);
	FOR_EACH_TARGET (u, &c)
		n += u == t[3];
	ck_assert_uint_eq(n, 1);
	targets_free(t[3]);
	ck_assert_ptr_null(state_next(&c, NULL));
	free(c.targets);
}
