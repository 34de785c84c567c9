/*
 * main of every unit test program: runs the one suite that the file defines.
 * CK_FORK=no in the environment keeps a failing test in a debugger's hands.
 */
#include "tests/unit/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* For what hangs: a machine may give us a tenth of its time. */
#define TIMEOUT_S "600"

/* See docs/HACKING.md. */
#define STATUS_SKIPPED 77

static bool lacks_getfd;

bool suite_has_getfd(void)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	int copy = fd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, fd, fd, 0);

	lacks_getfd = copy < 0;
	if (copy >= 0)
		(void)close(copy);
	if (fd >= 0)
		(void)close(fd);
	return !lacks_getfd;
}

int main(void)
{
	SRunner *runner;
	int failed;

	(void)setenv("CK_DEFAULT_TIMEOUT", TIMEOUT_S, 0);
	runner = srunner_create(suite());
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	if (failed)
		return EXIT_FAILURE;
	if (!lacks_getfd)
		return EXIT_SUCCESS;
	printf("what needs pidfd_getfd(2) is left out: it is refused here\n");
	return STATUS_SKIPPED;
}
