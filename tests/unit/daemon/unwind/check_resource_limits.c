#include "daemon/unwind/resource_limits.h"

/* Runs alone: it measures CPU time. */

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "tests/unit/suite.h"

/* Long: a host may charge CPU time that the guest did not have. */
#define CPU_NS (500 * NS_PER_MS)
#define MUCH   ((size_t)1 << 40)

static uint64_t used_ns(void)
{
	return clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* Uses twice the allowed CPU time; renews: and reports progress. */
static void work(bool renews)
{
	const struct rlimit no_core = {0};

	(void)setrlimit(RLIMIT_CORE, &no_core);
	if (resource_limits_start(MUCH, MUCH, CPU_NS) < 0)
		_exit(2);
	while (used_ns() < 2 * CPU_NS)
		if (renews)
			resource_limits_renew();
	_exit(0);
}

static void *volatile kept; /* keeps the compiler from removing malloc() */

static void grow(void)
{
	if (resource_limits_start((size_t)256 << 20, MUCH, CPU_NS) < 0)
		_exit(2);
	kept = malloc((size_t)16 << 20);
	if (kept == NULL)
		_exit(3);
	kept = malloc((size_t)256 << 20);
	_exit(kept == NULL ? 0 : 4);
}

static int wait_for(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

TEST(a_process_that_reports_progress_is_not_killed)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		work(true);
	status = wait_for(pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
}

TEST(a_process_without_progress_is_killed)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		work(false);
	status = wait_for(pid);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGXCPU);
}

TEST(malloc_fails_above_the_limit)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		grow();
	status = wait_for(pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
}

/* Writes two MB to a memfd of which one MB is permitted, and grows one. */
static void fill_memfd(void)
{
	static char mb[1 << 20];
	int fd = memfd_create("x", MFD_CLOEXEC);

	if (resource_limits_start(MUCH, sizeof(mb), CPU_NS) < 0)
		_exit(2);
	if (write(fd, mb, sizeof(mb)) != sizeof(mb))
		_exit(3);
	if (write(fd, mb, 1) >= 0 || errno != EFBIG)
		_exit(4);
	_exit(ftruncate(fd, 2 * sizeof(mb)) < 0 && errno == EFBIG ? 0 : 5);
}

TEST(a_memfd_does_not_grow_above_the_limit)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		fill_memfd();
	status = wait_for(pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
}

TEST(a_lower_limit_is_not_raised)
{
	const struct rlimit lower = {(rlim_t)1 << 30, (rlim_t)1 << 30};
	struct rlimit now;

	OK(setrlimit(RLIMIT_DATA, &lower));
	OK(resource_limits_start(MUCH, MUCH, NS_PER_SEC * 1000));
	OK(getrlimit(RLIMIT_DATA, &now));
	ck_assert_uint_eq(now.rlim_cur, lower.rlim_cur);
	ck_assert_uint_eq(now.rlim_max, lower.rlim_max);
}
