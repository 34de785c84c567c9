#include "daemon/capture/realtime.h"

/* Runs alone: it has a processor for itself at real-time priority. */

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "tests/unit/suite.h"

/*
 * So much that a half of it, which is the share at real-time priority, is twice
 * what the kernel allows without a sleep.
 */
#define BUSY_NS (2 * NS_PER_SEC)

/* More than half of a window, in which half may be used. */
#define MUCH_NS	  (60 * NS_PER_MS)
#define WINDOW_NS (100 * NS_PER_MS)

/* Never sleeps by itself. */
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

TEST(who_has_much_to_do_is_not_ended)
{
	int status = status_of(true);

	ck_assert(WIFEXITED(status));
}

TEST(who_hangs_is)
{
	int status = status_of(false);

	/* Where real-time priority is refused, nobody has to be. */
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

TEST(a_share_that_is_used_up_comes_back)
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
	/* Some threads may wait to be continued. */
	ck_assert(r.scheduler == SCHEDULER_NORMAL || getpriority(PRIO_PROCESS, 0) == -20);
	/* It has to wait for the window's end, */
	realtime_keep(&r, 0, now + WINDOW_NS - 1);
	ck_assert(r.exceeded);
	ck_assert(!is_real_time());
	/* then all is as before. */
	now += WINDOW_NS + MUCH_NS;
	realtime_keep(&r, 0, now);
	ck_assert(!r.exceeded);
	ck_assert(is_real_time() == (r.scheduler == SCHEDULER_FIFO));
	realtime_keep(&r, 0, now + MUCH_NS);
	ck_assert(!r.exceeded);
}

/* As much, in windows of which each has less than half of it. */
TEST(a_share_that_is_not_is_kept)
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

TEST(it_goes_above_who_is_looked_at)
{
	uint64_t now = 10 * NS_PER_SEC;
	struct realtime r;
	bool is_fifo;

	realtime_start(&r);
	is_fifo = r.scheduler == SCHEDULER_FIFO;
	ck_assert_int_eq(own_priority(), is_fifo ? 1 : 0);
	realtime_keep(&r, 50, now);
	ck_assert_int_eq(own_priority(), is_fifo ? 51 : 0);
	/* There is none above. */
	realtime_keep(&r, 99, now);
	ck_assert_int_eq(own_priority(), is_fifo ? 99 : 0);
	realtime_keep(&r, 0, now);
	ck_assert_int_eq(own_priority(), is_fifo ? 1 : 0);
	/* Its share has a limit there, too, */
	realtime_keep(&r, 20, now);
	use(MUCH_NS);
	realtime_keep(&r, 20, now + MUCH_NS);
	ck_assert(!is_real_time());
	realtime_keep(&r, 30, now + MUCH_NS);
	ck_assert(!is_real_time());
	/* and it comes back to where it is to be. */
	realtime_keep(&r, 30, now + WINDOW_NS + MUCH_NS);
	ck_assert_int_eq(own_priority(), is_fifo ? 31 : 0);
}
