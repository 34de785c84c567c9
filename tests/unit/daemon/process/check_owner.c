#include "daemon/process/owner.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "daemon/common/privileges.h"
#include "daemon/process/process.h"
#include "tests/unit/daemon/full.h"
#include "tests/unit/daemon/process/owned.h"
#include "tests/unit/daemon/process/stopped.h"
#include "tests/unit/suite.h"

#define USER  60001
#define OTHER 60002
#define GROUP 60011

static struct owned process;

static int be_user(uint32_t uid, uint32_t gid, uint32_t extra_group)
{
	const gid_t group = extra_group;

	return setgroups(extra_group != 0, &group) != 0 || setresgid(gid, gid, gid) != 0 ||
	       setresuid(uid, uid, uid) != 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0;
}

/* As root of a user namespace of its own, with all capabilities there. */
static int be_root_of_container(void)
{
	const char *const map[] = {"/proc/self/uid_map", "/proc/self/gid_map"};

	if (be_user(USER, USER, 0) != 0 || unshare(CLONE_NEWUSER) != 0)
		return 1;
	for (size_t i = 0; i < array_size(map); i++) {
		char text[32];
		int fd = open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC), n;

		(void)!write(fd, "deny", 4);
		(void)close(fd);
		n = snprintf(text, sizeof(text), "0 %d 1", USER);
		fd = open(map[i], O_WRONLY | O_CLOEXEC);
		if (fd < 0 || write(fd, text, (size_t)n) != n)
			return 1;
		(void)close(fd);
	}
	return 0;
}

static int keep(capability_set kept)
{
	return privileges_drop(USER, USER, kept, true) != 0;
}

static int take(char step)
{
	switch (step) {
	case 'r':
		return 0;
	case 'u':
		return be_user(USER, USER, 0);
	case 'o':
		return be_user(OTHER, OTHER, 0);
	case 'g':
		return be_user(USER, GROUP, 0);
	case 's':
		return be_user(USER, USER, GROUP);
	case 'd':
		return be_user(USER, USER, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0;
	case 'e':
		return seteuid(USER) != 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0;
	case 'E':
		return seteuid(0) != 0;
	case 'w': /* a worker: without an exec, and without prctl(2) */
		return setresgid(USER, USER, USER) != 0 || setresuid(USER, USER, USER) != 0;
	case 'G':
		return setresgid(USER, GROUP, USER) != 0 || setresuid(USER, USER, USER) != 0 ||
		       prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0;
	case 'c':
		return keep(CAPABILITY(CAP_NET_BIND_SERVICE));
	case 'C':
		return keep(CAPABILITY(CAP_NET_BIND_SERVICE) | CAPABILITY(CAP_NET_RAW));
	case 'n':
		return be_root_of_container();
	default:
		return execl("/bin/sleep", "sleep", "1000", NULL);
	}
}

static struct owner now(void)
{
	struct owner o;

	OK(owner_read(process.pid, &o));
	return o;
}

static void end(void)
{
	owned_end(&process);
}

static void begin(void)
{
	owned_start(&process, take);
}

FIXTURE(begin, end)

static const struct {
	char step;
	enum owner_kind kind;
	uint32_t uid, gid;
} kinds[] = {
	{'r', OWNER_ROOT, 0, 0},	 {'u', OWNER_PLAIN, USER, USER},
	{'g', OWNER_PLAIN, USER, GROUP}, {'s', OWNER_PLAIN, USER, USER},
	{'d', OWNER_MIXED, USER, USER},	 {'e', OWNER_MIXED, USER, 0},
	{'w', OWNER_MIXED, USER, USER},	 {'G', OWNER_MIXED, USER, GROUP},
	{'c', OWNER_MIXED, USER, USER},	 {'n', OWNER_PLAIN, USER, USER},
};

TESTS(the_kind_follows_from_ids_capabilities_and_files, getuid() == 0 ? array_size(kinds) : 0)
{
	struct owner o;

	owned_go(&process, kinds[_i].step);
	o = now();
	ck_assert_int_eq(o.kind, kinds[_i].kind);
	ck_assert_uint_eq(o.uid, kinds[_i].uid);
	ck_assert_uint_eq(o.gid, kinds[_i].gid);
	ck_assert_int_eq(owner_is_user(&o, USER), kinds[_i].kind == OWNER_PLAIN);
	ck_assert(!owner_is_user(&o, 0));
}

TEST_IF(supplementary_groups_are_read, getuid() == 0)
{
	struct owner o;

	owned_go(&process, 's');
	o = now();
	ck_assert_uint_eq(o.n_groups, 1);
	ck_assert_uint_eq(o.groups[0], GROUP);
}

/* Whether two processes may share an unwind process. */
static const struct {
	const char *steps;
	bool is_same;
} pairs[] = {
	{"rr", true},  {"uu", true},  {"nn", false}, {"uo", false}, {"ug", false}, {"us", false},
	{"ww", true},  {"dd", true},  {"ud", false}, {"ur", false}, {"un", false}, {"cc", true},
	{"cC", false}, {"cw", false}, {"ee", false}, {"er", false},
};

TESTS(only_equal_keys_share_an_unwind_process, getuid() == 0 ? array_size(pairs) : 0)
{
	struct owned other;
	struct owner mine, o;

	owned_start(&other, take);
	owned_go(&process, pairs[_i].steps[0]);
	owned_go(&other, pairs[_i].steps[1]);
	OK(owner_read(other.pid, &o));
	mine = now();
	ck_assert_int_eq(owner_is_same(&mine, &o), pairs[_i].is_same);
	owned_end(&other);
}

/* Not of another parent, nor after an exec. */
TEST_IF(workers_share_a_key_until_an_exec, getuid() == 0)
{
	struct owned other;
	struct owner before, after;

	owned_start(&other, take);
	owned_go(&process, 'w');
	owned_go(&other, 'w');
	OK(owner_read(other.pid, &before));
	ck_assert_int_eq(before.pool, getpid());
	ck_assert_int_eq(write(other.to, "x", 1), 1);
	do
		OK(owner_read(other.pid, &after));
	while (after.program == before.program);
	before = now();
	ck_assert(!owner_is_same(&before, &after));
	after = before;
	after.pool = 2;
	ck_assert(!owner_is_same(&before, &after));
	owned_end(&other);
}

/* A server that takes the ids of its clients in turn. */
TEST_IF(a_mixed_process_stays_mixed_until_it_is_plain, getuid() == 0)
{
	struct owner mixed, again;

	owned_go(&process, 'e');
	mixed = now();
	owned_go(&process, 'E');
	ck_assert_int_eq(now().kind, OWNER_ROOT);
	OK(owner_read_again(&mixed, &again));
	ck_assert_int_eq(again.kind, OWNER_MIXED);
	ck_assert_uint_eq(again.uid, USER);
	ck_assert(owner_is_unchanged(&mixed, &again));
	owned_go(&process, 'u');
	OK(owner_read_again(&mixed, &again));
	ck_assert_int_eq(again.kind, OWNER_PLAIN);
	ck_assert(!owner_is_unchanged(&mixed, &again));
}

static void await_exec(const struct owner *before)
{
	struct owner o;

	do
		OK(owner_read(process.pid, &o));
	while (o.program == before->program);
}

TEST(an_exec_is_a_change_even_with_the_same_key)
{
	const struct owner before = now();
	struct owner after = now();

	ck_assert(owner_is_unchanged(&before, &after));
	ck_assert_int_eq(write(process.to, "x", 1), 1);
	await_exec(&before);
	after = now();
	ck_assert(owner_is_same(&before, &after) || after.kind != before.kind);
	ck_assert(!owner_is_unchanged(&before, &after));
}

/* Of a set-user-ID program the unwind process of the program before must get nothing. */
TEST_IF(a_mixed_process_has_another_key_after_an_exec, getuid() == 0)
{
	struct owner mixed, again;

	owned_go(&process, 'c');
	mixed = now();
	ck_assert_int_eq(mixed.kind, OWNER_MIXED);
	ck_assert_int_eq(write(process.to, "x", 1), 1);
	await_exec(&mixed);
	OK(owner_read_again(&mixed, &again));
	again.kind = OWNER_MIXED;
	ck_assert(!owner_is_same(&mixed, &again));
}

TEST_IF(a_mixed_process_may_be_another_kind_after_an_exec, getuid() == 0)
{
	struct owner mixed, again;

	owned_go(&process, 'e');
	mixed = now();
	owned_go(&process, 'E');
	ck_assert_int_eq(write(process.to, "x", 1), 1);
	await_exec(&mixed);
	OK(owner_read_again(&mixed, &again));
	ck_assert_int_eq(again.kind, OWNER_ROOT);
}

static void kill_process(void)
{
	siginfo_t info;

	OK(kill(process.pid, SIGKILL));
	OK(waitid(P_PID, (id_t)process.pid, &info, WEXITED | WNOWAIT));
}

/* As one that is about to exit: its files belong to root then. */
TESTS(a_process_without_memory_has_no_owner, getuid() == 0 ? 2 : 1)
{
	struct owner o;

	if (_i == 1)
		owned_go(&process, 'u');
	kill_process();
	ck_assert_int_eq(owner_read(process.pid, &o), -ESRCH);
}

/* It is alive, and has no memory either. In a container pid 2 is another process. */
TEST(a_kernel_thread_has_no_owner)
{
	struct process look;
	struct owner o;

	if (process_look(2, &look) == PROCESS_KERNEL_THREAD)
		ck_assert_int_eq(owner_read(2, &o), -ESRCH);
	close_fd(&look.pidfd);
}

static int read_owner(const void *pid)
{
	struct owner o;

	return owner_read(*(const int32_t *)pid, &o);
}

/* The files are looked at after the first reading of the process. */
TEST_IF(a_process_that_exits_in_the_middle_has_no_owner, getuid() == 0)
{
	pid_t reader;

	owned_go(&process, 'u');
	reader = stopped_at(read_owner, &process.pid, SYS_newfstatat);
	kill_process();
	ck_assert_int_eq(stopped_result(reader), -ESRCH);
}

/* Of descriptors: neither the end of the process nor another owner. */
TEST(a_shortage_is_an_error_of_its_own)
{
	const struct owner before = now();
	struct full full;
	struct owner o;
	int r, again;

	full_but(&full, 0);
	r = owner_read(process.pid, &o);
	again = owner_read_again(&before, &o);
	full_end(&full);
	ck_assert_int_eq(r, -EMFILE);
	ck_assert_int_eq(again, -EMFILE);
}

TEST(a_process_that_does_not_exist_has_no_owner)
{
	struct owner o;

	ck_assert_int_eq(owner_read(INT32_MAX, &o), -ESRCH);
}
