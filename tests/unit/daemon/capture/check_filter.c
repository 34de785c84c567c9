#include "daemon/capture/filter.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/suite.h"

/* tests/unit/daemon/common/check_sandbox.c checks the rules; here the table is that of the build.
 */

/* Calls fn in a process under the filter; its status is what fn returns. */
static int status_of(bool uses_perf, bool kill, int (*fn)(int flags), int flags)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		    filter_install(uses_perf, kill) < 0)
			_exit(255);
		_exit(fn(flags));
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

static int open_file(int flags)
{
	return open("/dev/null", flags) < 0 ? errno : 0;
}

/* The pointer is refused by the kernel, if the filter lets the call pass. */
static int open_event(int flags)
{
	return syscall(SYS_perf_event_open, NULL, 0, 0, -1, flags) < 0 ? errno : 0;
}

/* Opens a file in a process under the filter. Returns the status of waitpid(2). */
static int status_of_opening(bool kill, int flags)
{
	return status_of(false, kill, open_file, flags);
}

TEST(the_filter_allows_reading_a_file_and_refuses_writing_one)
{
	ck_assert_int_eq(status_of_opening(false, O_RDONLY), W_EXITCODE(0, 0));
	ck_assert_int_eq(status_of_opening(false, O_WRONLY), W_EXITCODE(ENOSYS, 0));
}

TEST(the_other_filter_kills)
{
	int status = status_of_opening(true, O_WRONLY);

	ck_assert_int_eq(status_of_opening(true, O_RDONLY), W_EXITCODE(0, 0));
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGSYS);
}

TEST(perf_events_need_their_filter)
{
	ck_assert_int_eq(status_of(false, false, open_event, 0), W_EXITCODE(ENOSYS, 0));
	ck_assert(WIFSIGNALED(status_of(false, true, open_event, 0)));
	for (int kill = 0; kill < 2; kill++) {
		ck_assert_int_eq(status_of(true, kill, open_event, 0), W_EXITCODE(EFAULT, 0));
		ck_assert_int_eq(status_of(true, kill, open_file, O_RDONLY), W_EXITCODE(0, 0));
	}
	ck_assert_int_eq(status_of(true, false, open_file, O_WRONLY), W_EXITCODE(ENOSYS, 0));
}
