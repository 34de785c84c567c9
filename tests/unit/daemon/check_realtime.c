#include "daemon/realtime.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "tests/unit/suite.h"

/*
 * So much that a half of it, which is the share at real-time priority, is twice
 * what the kernel allows without a sleep.
 */
#define BUSY_NS (2 * NS_PER_SEC)

/* Never sleeps by itself. */
static void be_busy(bool keeps_share)
{
	struct realtime r;

	realtime_start(&r);
	while (clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) < BUSY_NS)
		if (keeps_share)
			realtime_keep_share(&r, clock_mono_ns());
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

START_TEST(who_has_much_to_do_is_not_ended)
{
	int status = status_of(true);

	ck_assert(WIFEXITED(status));
}
END_TEST

START_TEST(who_hangs_is)
{
	int status = status_of(false);

	/* Where real-time priority is refused, nobody has to be. */
	ck_assert(WIFSIGNALED(status) || WEXITSTATUS(status) == 1);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("realtime");
	TCase *c = tcase_create("realtime");

	tcase_add_test(c, who_has_much_to_do_is_not_ended);
	tcase_add_test(c, who_hangs_is);
	suite_add_tcase(s, c);
	return s;
}
