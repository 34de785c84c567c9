/* What is logged, for tests that look for it. */
#ifndef TESTS_UNIT_DAEMON_HEARD_H
#define TESTS_UNIT_DAEMON_HEARD_H

#include <check.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int stderr_was;

/* From here on, what is logged goes into a file. */
static void hear(void)
{
	int fd = memfd_create("stderr", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	stderr_was = dup(STDERR_FILENO);
	ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	(void)close(fd);
}

/* How many lines of it hold the text. */
static unsigned int heard(const char *text)
{
	static char log[65536];
	ssize_t n = pread(STDERR_FILENO, log, sizeof(log) - 1, 0);
	unsigned int found = 0;

	ck_assert_int_ge(n, 0);
	log[n] = '\0';
	for (const char *at = log; (at = strstr(at, text)) != NULL; at++)
		found++;
	(void)dup2(stderr_was, STDERR_FILENO);
	(void)close(stderr_was);
	return found;
}

#endif
