/* Captures the log of this process (stderr), for tests that check its lines. */
#ifndef TESTS_UNIT_DAEMON_LOG_CAPTURE_H
#define TESTS_UNIT_DAEMON_LOG_CAPTURE_H

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int former_stderr;

/* Redirects stderr to a memfd. */
static void log_capture_begin(void)
{
	int fd = memfd_create("stderr", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	former_stderr = dup(STDERR_FILENO);
	ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	(void)close(fd);
}

/* Restores stderr. Returns how often text occurs in what was logged since log_capture_begin(). */
static unsigned int log_capture_end(const char *text)
{
	static char log[65536];
	ssize_t n = pread(STDERR_FILENO, log, sizeof(log) - 1, 0);
	unsigned int found = 0;

	ck_assert_int_ge(n, 0);
	log[n] = '\0';
	for (const char *at = log; (at = strstr(at, text)) != NULL; at++)
		found++;
	(void)dup2(former_stderr, STDERR_FILENO);
	(void)close(former_stderr);
	return found;
}

/* Returns how often text occurs in what fn() logs, in a process of its own, before it exits with 1.
 */
static inline unsigned int log_capture_exit(void (*fn)(void), const char *text)
{
	int status;
	pid_t pid;

	log_capture_begin();
	pid = fork();
	if (pid == 0) {
		fn();
		_exit(EXIT_SUCCESS);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), EXIT_FAILURE);
	return log_capture_end(text);
}

#endif
