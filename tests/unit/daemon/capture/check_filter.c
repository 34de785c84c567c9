#include "daemon/capture/filter.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/suite.h"

/* tests/unit/daemon/common/check_sandbox.c checks the rules; here the table is that of the build.
 */

/* Opens a file in a process under the filter. Returns the status of waitpid(2). */
static int status_of_opening(bool kill, int flags)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || filter_install(kill) < 0)
			_exit(255);
		_exit(open("/dev/null", flags) < 0 ? errno : 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
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
