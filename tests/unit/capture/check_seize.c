#include "lib/capture/seize.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/suite.h"

/* The module's handler jumps out of seize_thread(), and must not jump when nothing is seized. */
TEST(an_alarm_of_another_process_is_ignored)
{
	const pid_t pid = fork();
	struct seize s;

	if (pid == 0)
		for (;;)
			(void)pause();
	seize_begin(&s);
	ck_assert_int_eq(raise(SIGALRM), 0);
	OK(seize_thread((uint32_t)pid, 0));
	ck_assert_int_eq(raise(SIGALRM), 0);
	ck_assert_int_eq(seize_thread((uint32_t)pid, 0), -EPERM);
	seize_end(&s);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, NULL, __WALL), pid);
}
