#include "daemon/process/act_as.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/suite.h"

#define USER   60001
#define NOBODY 65534

/* The broker's effective capabilities, and one that is only permitted in a container. */
#define EFFECTIVE                                                                 \
	(CAPABILITY(CAP_SETUID) | CAPABILITY(CAP_SETGID) | CAPABILITY(CAP_KILL) | \
	 CAPABILITY(CAP_SYS_PTRACE))
#define HANDED_ON CAPABILITY(CAP_DAC_OVERRIDE)

static char path[32];

static void setup(void)
{
	int fd;

	(void)snprintf(path, sizeof(path), "/tmp/check_act_as.XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	OK(fchmod(fd, 0600));
	(void)close(fd);
}

static void teardown(void)
{
	(void)unlink(path);
}

static bool opens(void)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)close(fd);
	return fd >= 0;
}

static capability_set effective(void)
{
	capability_set set;

	OK(privileges_effective(&set));
	return set;
}

/* Each test drops the privileges of its own process, so CK_FORK=no does not work here. */
FIXTURE(setup, teardown)

TEST_IF(act_as_takes_the_rights_of_the_user, getuid() == 0)
{
	struct act_as before;

	ck_assert(opens());
	OK(act_as(USER, USER, &before));
	ck_assert(!opens() && errno == EACCES);
	errno = ENOTTY;
	act_as_restore(&before);
	ck_assert_int_eq(errno, ENOTTY);
	ck_assert(opens());
	OK(chown(path, USER, USER));
	OK(act_as(USER, USER, &before));
	ck_assert(opens());
	act_as_restore(&before);
}

/* Root of a user namespace has uid 0 and no capability outside of it. */
TEST_IF(act_as_gives_root_of_a_container_no_capability, getuid() == 0)
{
	const struct owner container = {.kind = OWNER_PLAIN, .uid = 0, .gid = 0};
	const struct owner root = {.kind = OWNER_ROOT, .uid = 0, .gid = 0};
	struct act_as before;

	OK(chown(path, USER, USER));
	OK(act_as_owner(&container, &before));
	ck_assert(!opens() && errno == EACCES);
	act_as_restore(&before);
	ck_assert(opens());
	OK(act_as_owner(&root, &before));
	ck_assert(opens());
	act_as_restore(&before);
}

/* Without act_as_restore() the kernel would make permitted capabilities effective. */
TEST_IF(restore_makes_no_further_capability_effective, getuid() == 0)
{
	struct act_as before;

	OK(privileges_limit(EFFECTIVE, HANDED_ON));
	ck_assert_int_eq(chown(path, USER, USER), -1);
	OK(act_as(USER, USER, &before));
	act_as_restore(&before);
	ck_assert_uint_eq(effective(), EFFECTIVE);
}

TEST_IF(act_as_keeps_the_death_signal, getuid() == 0)
{
	struct act_as before;
	int signal = 0;

	OK(prctl(PR_SET_PDEATHSIG, SIGKILL));
	OK(act_as(USER, USER, &before));
	OK(prctl(PR_GET_PDEATHSIG, &signal));
	ck_assert_int_eq(signal, SIGKILL);
	act_as_restore(&before);
	OK(prctl(PR_GET_PDEATHSIG, &signal));
	ck_assert_int_eq(signal, SIGKILL);
}

/* The process never has the user's uid with root's gid, or the reverse. */
TEST_IF(act_as_changes_both_ids_or_none, getuid() == 0)
{
	struct act_as before;

	OK(privileges_limit(CAPABILITY(CAP_SETUID), 0));
	ck_assert_int_eq(act_as(USER, USER, &before), -EPERM);
	ck_assert(opens());
	OK(act_as(0, 0, &before));
	act_as_restore(&before);
}

TEST(an_ordinary_user_may_act_as_itself_only)
{
	struct act_as before;
	struct owner self;

	if (getuid() == 0)
		OK(privileges_drop(NOBODY, NOBODY, 0, true));
	OK(act_as(getuid(), getgid(), &before));
	act_as_restore(&before);
	ck_assert_int_eq(act_as(USER, USER, &before), -EPERM);
	OK(owner_read(getpid(), &self));
	OK(act_as_owner(&self, &before));
	act_as_restore(&before);
}

/* /proc/PID/environ is for the owner only: the process's user, or root if it is not dumpable. */
TESTS(open_takes_the_rights_of_the_process_if_needed, getuid() == 0 ? 2 : 0)
{
	char environ[32];
	struct owner owner;
	int ends[2], fd;
	pid_t pid;
	char c;

	OK(pipe2(ends, O_CLOEXEC));
	pid = fork();
	if (pid == 0) {
		if (privileges_drop(USER, USER, 0, _i == 0) < 0 || write(ends[1], "", 1) != 1)
			_exit(1);
		(void)pause();
		_exit(1);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(read(ends[0], &c, 1), 1);
	OK(privileges_limit(EFFECTIVE, HANDED_ON));
	(void)snprintf(environ, sizeof(environ), "/proc/%d/environ", pid);
	OK(owner_read(pid, &owner));
	fd = act_as_open(&owner, environ, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	(void)close(fd);
	/* An error other than EACCES is returned. */
	ck_assert_int_eq(act_as_open(&owner, "/proc/1/no_such", O_RDONLY), -ENOENT);
	OK(kill(pid, SIGKILL));
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
