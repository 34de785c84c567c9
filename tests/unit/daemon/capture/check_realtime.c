#include "daemon/capture/realtime.h"

/* Runs alone: it uses a whole processor at real-time priority. */

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "tests/unit/suite.h"

/*
 * Half of this time, the share at real-time priority, is twice what the kernel allows without a
 * sleep.
 */
#define BUSY_NS (2 * NS_PER_SEC)

/* More than half of a window, which is the share. */
#define MUCH_NS	  (60 * NS_PER_MS)
#define WINDOW_NS (100 * NS_PER_MS)

/* Computes without a sleep. keeps_share: calls realtime_keep() in between. */
static void be_busy(bool keeps_share)
{
	const struct rlimit no_core = {0};
	struct realtime r;

	(void)setrlimit(RLIMIT_CORE, &no_core);
	realtime_start(&r);
	while (clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) < BUSY_NS)
		if (keeps_share)
			realtime_keep(&r, 0, clock_mono_ns());
	_exit(r.scheduler == SCHEDULER_FIFO ? 0 : 1);
}

static int status_of(bool keeps_share)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		be_busy(keeps_share);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

TEST(a_tracer_within_its_share_is_not_killed)
{
	int status = status_of(true);

	ck_assert(WIFEXITED(status));
}

TEST(a_tracer_that_never_sleeps_is_killed)
{
	int status = status_of(false);

	/* If real-time priority is refused, no limit applies. */
	ck_assert(WIFSIGNALED(status) ? WTERMSIG(status) == SIGXCPU : WEXITSTATUS(status) == 1);
}

static bool is_real_time(void)
{
	return (sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_FIFO;
}

static void use(uint64_t ns)
{
	uint64_t until = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) + ns;

	while (clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) < until)
		;
}

TEST(a_used_up_share_is_renewed_in_the_next_window)
{
	uint64_t now = 10 * NS_PER_SEC;
	struct realtime r;

	realtime_start(&r);
	realtime_keep(&r, 0, now);
	ck_assert(!r.exceeded);
	ck_assert(is_real_time() == (r.scheduler == SCHEDULER_FIFO));
	use(MUCH_NS);
	realtime_keep(&r, 0, now + MUCH_NS);
	ck_assert(r.exceeded);
	ck_assert(!is_real_time());
	/* Threads may wait to be continued, so the tracer keeps its nice value. */
	ck_assert(r.scheduler == SCHEDULER_NORMAL || getpriority(PRIO_PROCESS, 0) == -20);
	/* The share stays used up until the end of the window, */
	realtime_keep(&r, 0, now + WINDOW_NS - 1);
	ck_assert(r.exceeded);
	ck_assert(!is_real_time());
	/* and is whole after that. */
	now += WINDOW_NS + MUCH_NS;
	realtime_keep(&r, 0, now);
	ck_assert(!r.exceeded);
	ck_assert(is_real_time() == (r.scheduler == SCHEDULER_FIFO));
	realtime_keep(&r, 0, now + MUCH_NS);
	ck_assert(!r.exceeded);
}

/* The same time in total, but less than half of each window. */
TEST(less_than_half_of_each_window_does_not_exceed_the_share)
{
	uint64_t now = 10 * NS_PER_SEC;
	struct realtime r;

	realtime_start(&r);
	realtime_keep(&r, 0, now);
	for (int i = 0; i < 4; i++) {
		use(MUCH_NS / 3);
		now += WINDOW_NS;
		realtime_keep(&r, 0, now - WINDOW_NS / 2);
		ck_assert(!r.exceeded);
		realtime_keep(&r, 0, now);
	}
	ck_assert(!r.exceeded);
}

static int own_priority(void)
{
	struct sched_param param;

	OK(sched_getparam(0, &param));
	return param.sched_priority;
}

TEST(the_priority_is_above_that_of_the_sampled_threads)
{
	uint64_t now = 10 * NS_PER_SEC;
	struct realtime r;
	bool is_fifo;

	realtime_start(&r);
	is_fifo = r.scheduler == SCHEDULER_FIFO;
	ck_assert_int_eq(own_priority(), is_fifo ? 1 : 0);
	realtime_keep(&r, 50, now);
	ck_assert_int_eq(own_priority(), is_fifo ? 51 : 0);
	/* There is no higher priority. */
	realtime_keep(&r, 99, now);
	ck_assert_int_eq(own_priority(), is_fifo ? 99 : 0);
	realtime_keep(&r, 0, now);
	ck_assert_int_eq(own_priority(), is_fifo ? 1 : 0);
	/* The share is limited at that priority, too, */
	realtime_keep(&r, 20, now);
	use(MUCH_NS);
	realtime_keep(&r, 20, now + MUCH_NS);
	ck_assert(!is_real_time());
	realtime_keep(&r, 30, now + MUCH_NS);
	ck_assert(!is_real_time());
	/* and the priority is restored in the next window. */
	realtime_keep(&r, 30, now + WINDOW_NS + MUCH_NS);
	ck_assert_int_eq(own_priority(), is_fifo ? 31 : 0);
}
