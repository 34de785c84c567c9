/*
 * Runs a test as after a long suspend of the machine: in a process for which CLOCK_BOOTTIME is
 * SUSPENDED_S ahead of the other clocks (time_namespaces(7)).
 */
#ifndef TESTS_UNIT_DAEMON_SUSPENDED_H
#define TESTS_UNIT_DAEMON_SUSPENDED_H

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/util.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

/* Longer than any limit, so that all limits by CLOCK_BOOTTIME are over. */
#define SUSPENDED_S 1000000

static inline int suspended_offset(void)
{
	char text[48];
	int fd, r = 0;

	if (unshare(CLONE_NEWTIME) < 0)
		return -errno;
	fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	(void)snprintf(text, sizeof(text), "boottime %d 0\n", SUSPENDED_S);
	r = write_all(fd, text, strlen(text));
	close_fd(&fd);
	return r;
}

/*
 * Runs fn in such a process; a failed assertion fails the test. If the process lacks the rights or
 * the kernel has no time namespaces, prints that and does not run fn.
 */
static inline void suspended_run(void (*fn)(void))
{
	int status, r = suspended_offset();
	pid_t child;

	if (r == -EPERM || r == -EINVAL || r == -ENOENT) {
		printf("no other CLOCK_BOOTTIME: %s\n", strerror(-r));
		return;
	}
	ck_assert_int_eq(r, 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		/* Check does not know this process, so a failed assertion is its exit status. */
		fn();
		_exit(EXIT_SUCCESS);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}

#endif
