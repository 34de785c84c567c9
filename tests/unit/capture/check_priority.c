#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/capture/capture.h"
#include "lib/capture/state.h"
#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

/* The most ticks after which a name is read again. */
#define NAME_TICKS_MOST 32

static struct live l;
static pid_t one, other;
static unsigned int n_asked;

/* Replaces the C library's function. */
int sched_getscheduler(pid_t tid)
{
	n_asked++;
	return (int)syscall(SYS_sched_getscheduler, tid);
}

static void set_priority(pid_t tid, int policy, int priority)
{
	const struct sched_param param = {.sched_priority = priority};

	OK(sched_setscheduler(tid, policy, &param));
}

static int highest(void)
{
	return capture_realtime_priority(l.capture);
}

static void set_up(void)
{
	live_begin(&l, "cap_threads", NULL, NULL);
	one = (pid_t)live_ask(&l, "busy 1", "ok");
	other = (pid_t)live_ask(&l, "busy 1", "ok");
	live_until_blocked(&l, l.pid);
	live_ticks(&l, 3);
	ck_assert_int_eq(highest(), 0);
}

static void tear_down(void)
{
	live_end(&l);
}

/*
 * Waits until the thread is awake. A thread that was continued after its last stop and has had no
 * processor since counts, rightly, as asleep: it keeps no other thread from a processor, so its
 * priority is not read.
 */
static void until_awake(void)
{
	for (; live_known(&l, one)->asleep || live_known(&l, other)->asleep; live_patience())
		live_ticks(&l, 1);
}

static void tick_late(void)
{
	until_awake();
	live_tick_late(&l, 2);
	live_settle(&l);
}

/*
 * Returns false if there can be no real-time targets: without CAP_SYS_NICE, or in a cgroup without
 * real-time budget.
 */
static bool has_realtime(void)
{
	const struct sched_param fifo = {.sched_priority = 1}, none = {0};

	if (sched_setscheduler(0, SCHED_FIFO, &fifo) == 0)
		return sched_setscheduler(0, SCHED_OTHER, &none) == 0;
	return errno != EPERM;
}

FIXTURE(set_up, tear_down)

TEST_IF(priorities_are_read_after_a_late_tick, has_realtime())
{
	set_priority(one, SCHED_FIFO, 3);
	set_priority(other, SCHED_RR | SCHED_RESET_ON_FORK, 7);
	tick_late();
	ck_assert_int_eq(highest(), 7);
	set_priority(other, SCHED_OTHER, 0);
	tick_late();
	ck_assert_int_eq(highest(), 3);
	set_priority(one, SCHED_BATCH, 0);
	tick_late();
	ck_assert_int_eq(highest(), 0);
}

TEST_IF(priorities_are_read_with_the_names, has_realtime())
{
	set_priority(one, SCHED_RR, 2);
	for (int i = 0; i < NAME_TICKS_MOST && highest() == 0; i++) {
		until_awake();
		live_ticks(&l, 1);
	}
	ck_assert_int_eq(highest(), 2);
}

TEST_IF(a_priority_counts_from_a_threads_start_to_its_end, has_realtime())
{
	set_priority(l.pid, SCHED_FIFO, 5);
	(void)live_ask(&l, "busy 1", "ok");
	set_priority(l.pid, SCHED_OTHER, 0);
	live_until_blocked(&l, l.pid);
	for (int i = 0; highest() == 0; i++) {
		live_ticks(&l, 1);
		live_patience();
	}
	ck_assert_int_eq(highest(), 5);
	OK(kill(l.child, SIGKILL));
	while (!l.ended) {
		live_tick(&l);
		live_read(&l);
		live_patience();
	}
	ck_assert_int_eq(highest(), 0);
}

/*
 * Returns how often the priority is read after a rest: at the tick to which the thread has rested,
 * or this many ticks later.
 */
static unsigned int reads_after_a_sleep(uint64_t ticks)
{
	uint64_t next, captured;

	for (; (next = capture_next_tick(l.capture)) <= l.tick + 2; live_patience())
		live_ticks(&l, 1);
	(void)live_ask(&l, "asleep 0", "ok");
	live_until_blocked(&l, l.pid);
	n_asked = 0;
	captured = l.counters.captured;
	live_tick_late(&l, next + ticks - l.tick);
	ck_assert_uint_eq(l.counters.captured, captured + 1);
	return n_asked;
}

FIXTURE(NULL, tear_down)

TEST(skipped_ticks_of_a_sleeping_process_are_not_late)
{
	struct thread *th;

	live_begin(&l, "cap_threads", NULL, NULL);
	live_until_blocked(&l, l.pid);
	live_ticks(&l, 1);
	th = live_known(&l, l.pid);
	/* The name is not due, so that the priority is not read because of it. */
	th->reader.name_tick = th->target->reader.names_tick = UINT64_MAX;
	ck_assert_uint_eq(reads_after_a_sleep(0), 0);
	ck_assert_uint_eq(reads_after_a_sleep(1), 1);
	live_check_sum(&l);
}
