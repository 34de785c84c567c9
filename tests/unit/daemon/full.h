/* Fills the table of descriptors of this process, for tests of EMFILE. */
#ifndef TESTS_UNIT_DAEMON_FULL_H
#define TESTS_UNIT_DAEMON_FULL_H

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/unit/suite.h"

#define FULL_MAX 128

struct full {
	struct rlimit before;
	int fds[FULL_MAX];
	int n;
};

/* Opens descriptors until only this number can be opened. */
static inline void full_but(struct full *full, int room)
{
	struct rlimit limit;
	int fd;

	OK(getrlimit(RLIMIT_NOFILE, &full->before));
	limit = full->before;
	limit.rlim_cur = FULL_MAX;
	OK(setrlimit(RLIMIT_NOFILE, &limit));
	full->n = 0;
	while ((fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0)
		full->fds[full->n++] = fd;
	ck_assert_int_eq(errno, EMFILE);
	ck_assert_int_ge(full->n, room);
	while (room-- > 0)
		(void)close(full->fds[--full->n]);
}

/* Closes the descriptors, and restores the limit. */
static inline void full_end(struct full *full)
{
	while (full->n > 0)
		(void)close(full->fds[--full->n]);
	OK(setrlimit(RLIMIT_NOFILE, &full->before));
}

#endif
