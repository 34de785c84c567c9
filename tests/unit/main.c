/*
 * main of every unit test program: runs the tests that have registered.
 * CK_FORK=no in the environment keeps a failing test in a debugger's hands.
 */
#include "tests/unit/suite.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/common/version.h"

/* For what hangs: a machine may give us a tenth of its time. */
#define TIMEOUT_S "600"

/* See docs/HACKING.md. */
#define STATUS_SKIPPED 77

/* For code of daemon/: without the commit, so that a commit relinks no test. */
const char version_text[] = SENTRY_PROFD_VERSION;

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

int suite_file(const char *text)
{
	const int fd = memfd_create("text", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	return fd;
}

static char directory[64];
static pid_t owner; /* of the directory: not a child of the test */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st, (void)kind, (void)ftw;
	return remove(path);
}

static void remove_directory(void)
{
	if (owner == getpid())
		(void)nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *suite_directory(void)
{
	if (owner != getpid())
		OK(atexit(remove_directory));
	remove_directory();
	owner = getpid();
	(void)snprintf(directory, sizeof(directory), "/tmp/%s.XXXXXX",
		       program_invocation_short_name);
	ck_assert_ptr_nonnull(mkdtemp(directory));
	return directory;
}

/* The test program lies below build/tests. */
void suite_target(const char *name, char *path, size_t size)
{
	char self[PATH_MAX], *tests = NULL;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	ck_assert_int_gt(n, 0);
	self[n] = '\0';
	for (char *at = self; (at = strstr(at, "/tests/")) != NULL; at++)
		tests = at;
	ck_assert_ptr_nonnull(tests);
	*tests = '\0';
	n = snprintf(path, size, "%s/targets/%s", self, name);
	ck_assert(n > 0 && (size_t)n < size);
}

static struct suite_entry *entries;

/* Sorted by line: the compiler puts constructors into an order of its own. */
void suite_add(struct suite_entry *entry)
{
	struct suite_entry **at = &entries;

	while (*at != NULL && (*at)->line < entry->line)
		at = &(*at)->next;
	entry->next = *at;
	*at = entry;
}

static TCase *begin_case(Suite *suite, SFun set_up, SFun tear_down)
{
	TCase *c = tcase_create(program_invocation_short_name);

	tcase_add_checked_fixture(c, set_up, tear_down);
	suite_add_tcase(suite, c);
	return c;
}

static Suite *make_suite(void)
{
	Suite *suite = suite_create(program_invocation_short_name);
	TCase *c = begin_case(suite, NULL, NULL);

	for (const struct suite_entry *e = entries; e != NULL; e = e->next) {
		if (e->test == NULL)
			c = begin_case(suite, e->set_up, e->tear_down);
		else
			tcase_add_loop_test(c, e->test, 0, e->times);
	}
	return suite;
}

int main(void)
{
	SRunner *runner;
	int failed;

	(void)setenv("CK_DEFAULT_TIMEOUT", TIMEOUT_S, 0);
	runner = srunner_create(make_suite());
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
