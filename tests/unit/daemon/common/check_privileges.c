/* Tests that need root are left out if the program does not run as root. */
#include "daemon/common/privileges.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/msg/msg.h"
#include "tests/unit/suite.h"

#define NOBODY 65534
#define KEEP   (CAPABILITY(CAP_SYS_PTRACE) | CAPABILITY(CAP_CHECKPOINT_RESTORE))

static bool bounding_has(int cap)
{
	return prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1;
}

static capability_set effective(void)
{
	capability_set set;

	OK(privileges_effective(&set));
	return set;
}

static void assert_ids(uid_t expected)
{
	uid_t u[3];
	gid_t g[3];

	OK(getresuid(&u[0], &u[1], &u[2]));
	OK(getresgid(&g[0], &g[1], &g[2]));
	for (size_t i = 0; i < 3; i++) {
		ck_assert_uint_eq(u[i], expected);
		ck_assert_uint_eq(g[i], expected);
	}
}

/* Each test drops the privileges of its own process, so CK_FORK=no does not work here. */

TEST_IF(drop_removes_all_privileges, getuid() == 0)
{
	OK(setgroups(1, &(gid_t){1}));
	ck_assert_uint_ne(effective(), 0);
	ck_assert(bounding_has(CAP_SYS_PTRACE));
	OK(privileges_drop(NOBODY, NOBODY, 0, false));
	assert_ids(NOBODY);
	OK(getgroups(0, NULL));
	ck_assert_uint_eq(effective(), 0);
	for (int cap = 0; cap < 64; cap++)
		ck_assert(!bounding_has(cap));
	ck_assert_int_eq(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
	OK(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
	OK(prctl(PR_GET_KEEPCAPS, 0, 0, 0, 0));
	ck_assert_int_ne(setresuid(0, 0, 0), 0);
	ck_assert_int_ne(setgid(0), 0);
	ck_assert_int_lt(open("/proc/1/mem", O_RDONLY | O_CLOEXEC), 0);
}

TEST_IF(drop_keeps_the_listed_capabilities, getuid() == 0)
{
	OK(privileges_drop(NOBODY, NOBODY, KEEP, true));
	assert_ids(NOBODY);
	ck_assert_uint_eq(effective(), KEEP);
	ck_assert(!bounding_has(CAP_SYS_PTRACE));
	ck_assert_int_eq(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 1);
	ck_assert_int_eq(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
	ck_assert_int_ne(setresuid(0, 0, 0), 0);
	/* A second call can drop more. */
	OK(privileges_drop(PRIVILEGES_KEEP_ID, PRIVILEGES_KEEP_ID, 0, false));
	ck_assert_uint_eq(effective(), 0);
}

TEST_IF(drop_keeps_the_ids_on_request, getuid() == 0)
{
	OK(privileges_drop(PRIVILEGES_KEEP_ID, PRIVILEGES_KEEP_ID, KEEP, false));
	assert_ids(0);
	ck_assert_uint_eq(effective(), KEEP);
}

TEST_IF(drop_works_for_an_ordinary_user, getuid() == 0)
{
	OK(setgroups(0, NULL));
	OK(setresgid(NOBODY, NOBODY, NOBODY));
	OK(setresuid(NOBODY, NOBODY, NOBODY));
	/* An ordinary user has no capabilities to keep. */
	OK(privileges_drop(PRIVILEGES_KEEP_ID, PRIVILEGES_KEEP_ID, KEEP, false));
	ck_assert_uint_eq(effective(), 0);
	assert_ids(NOBODY);
	ck_assert_int_eq(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
	OK(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
	/* An ordinary user cannot change the user or the group. */
	ck_assert_int_eq(privileges_drop(1, PRIVILEGES_KEEP_ID, 0, false), -EPERM);
	ck_assert_int_eq(privileges_drop(PRIVILEGES_KEEP_ID, 1, 0, false), -EPERM);
}

/* Returns the effective set of a program that this process executes. */
static capability_set effective_after_exec(void)
{
	unsigned long long set = 0;
	int ends[2];
	FILE *in;
	pid_t pid;

	OK(pipe2(ends, O_CLOEXEC));
	pid = fork();
	if (pid == 0) {
		(void)dup2(ends[1], STDOUT_FILENO);
		(void)execl("/bin/grep", "grep", "CapEff", "/proc/self/status", (char *)NULL);
		_exit(1);
	}
	ck_assert_int_gt(pid, 0);
	(void)close(ends[1]);
	in = fdopen(ends[0], "r");
	ck_assert_ptr_nonnull(in);
	ck_assert_int_eq(fscanf(in, "CapEff: %llx", &set), 1);
	OK(fclose(in));
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	return set;
}

TEST_IF(limit_keeps_the_capabilities_to_hand_on_permitted, getuid() == 0)
{
	const capability_set handed_on = CAPABILITY(CAP_SYS_NICE);

	OK(privileges_limit(KEEP, handed_on));
	assert_ids(0);
	ck_assert_uint_eq(effective(), KEEP);
	for (int cap = 0; cap < 64; cap++)
		ck_assert(bounding_has(cap) == (((KEEP | handed_on) & CAPABILITY(cap)) != 0));
	/* A program that root executes also gets the capabilities to hand on. */
	ck_assert_int_eq(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
	ck_assert_uint_eq(effective_after_exec(), KEEP | handed_on);
	/* Without CAP_SETPCAP the bounding set stays as it is. */
	OK(privileges_limit(0, KEEP));
	ck_assert_uint_eq(effective(), 0);
	ck_assert(bounding_has(CAP_SYS_NICE));
}

TEST_IF(make_effective_sets_permitted_capabilities_only, getuid() == 0)
{
	const capability_set handed_on = CAPABILITY(CAP_SYS_NICE);

	OK(privileges_limit(KEEP, handed_on));
	OK(privileges_make_effective(handed_on));
	ck_assert_uint_eq(effective(), handed_on);
	OK(privileges_make_effective(UINT64_MAX));
	ck_assert_uint_eq(effective(), KEEP | handed_on);
}

TEST(to_read_prefers_the_weaker_capability)
{
	const capability_set reads = CAPABILITY(CAP_DAC_READ_SEARCH);
	const capability_set writes = CAPABILITY(CAP_DAC_OVERRIDE);

	ck_assert_uint_eq(privileges_for_reading(UINT64_MAX), reads);
	ck_assert_uint_eq(privileges_for_reading(reads), reads);
	ck_assert_uint_eq(privileges_for_reading(writes | KEEP), writes);
	ck_assert_uint_eq(privileges_for_reading(KEEP), 0);
}

TEST(drop_sets_no_new_privs_also_without_root)
{
	OK(privileges_drop(PRIVILEGES_KEEP_ID, PRIVILEGES_KEEP_ID, 0, false));
	ck_assert_uint_eq(effective(), 0);
	ck_assert_int_eq(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
}
