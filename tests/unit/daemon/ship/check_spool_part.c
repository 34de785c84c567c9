/* Directories of the DSNs in a spool: whose files lie where, and for how long.
 */
#include "daemon/ship/spool_part.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/common/sandbox.h"
#include "lib/base/clock.h"
#include "lib/ship/spool_name.h"
#include "tests/unit/suite.h"

#define FIRST  UINT64_C(0x1111)
#define SECOND UINT64_C(0x2222)
#define PART   "0000000000002222"
#define AGE_S  1000
/* Whoever has it has done it by then. */
#define LATER_S 3600

static int dir;
static struct spool_parts parts;

/* In place of libc's: a part is found empty, and removed, so soon after. */
static unsigned int made_in_vain, locked_in_vain;

static void remove_part(unsigned int *left)
{
	if (*left == 0)
		return;
	(*left)--;
	OK(unlinkat(dir, PART, AT_REMOVEDIR));
}

int mkdirat(int fd, const char *name, mode_t mode)
{
	const long r = syscall(SYS_mkdirat, fd, name, mode);

	remove_part(&made_in_vain);
	return (int)r;
}

int flock(int fd, int operation)
{
	remove_part(&locked_in_vain);
	return (int)syscall(SYS_flock, fd, operation);
}

static void set_up(void)
{
	dir = open(suite_directory(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dir, 0);
}

static void tear_down(void)
{
	close_fd(&dir);
}

/* What it is called in a part, or in the spool's directory: "". */
static void name_of(const char *part, uint64_t dsn, uint8_t n, uint64_t age_s, char *ret,
		    size_t size)
{
	const struct spool_entry e = {
		.time_ms = clock_wall_ns() / NS_PER_MS - age_s * 1000,
		.dsn = dsn,
		.id = {n},
	};
	char name[SPOOL_NAME_SIZE];

	spool_name(&e, name);
	(void)snprintf(ret, size, "%s%s%s", part, *part == '\0' ? "" : "/", name);
}

static void put(const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	close_fd(&fd);
}

static bool is_there(const char *name)
{
	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* As a ship does at its start. */
static int open_as(uint64_t dsn, bool first)
{
	const struct msg_init init = {
		.spool_dsn = dsn,
		.spool_is_first = first,
		.spool_age_s = AGE_S,
	};

	return spool_part_open(dup(dir), &init, &parts);
}

FIXTURE(set_up, tear_down)

TEST(each_has_its_place)
{
	char own[128], left[128], moved[128 + sizeof(PART)];
	int first = open_as(FIRST, true), second;
	struct stat a, b;

	ck_assert_int_ge(first, 0);
	ck_assert(fstat(first, &a) == 0 && fstat(dir, &b) == 0);
	ck_assert_uint_eq(a.st_ino, b.st_ino);
	ck_assert(!is_there(PART));
	/* It was the first before, and somebody else is now. */
	name_of("", SECOND, 1, 0, left, sizeof(left));
	name_of("", FIRST, 2, 0, own, sizeof(own));
	put(left);
	put(own);
	second = open_as(SECOND, false);
	ck_assert_int_ge(second, 0);
	ck_assert_int_eq(parts.dir_fd, -1);
	(void)snprintf(moved, sizeof(moved), PART "/%s", left);
	ck_assert(!is_there(left) && is_there(moved) && is_there(own));
	/* And the other way round. */
	close_fd(&second);
	close_fd(&first);
	first = open_as(SECOND, true);
	ck_assert(is_there(left) && !is_there(moved));
	close_fd(&first);
}

TESTS(what_is_removed_meanwhile_is_made_again, 2)
{
	struct stat st;
	int part;

	made_in_vain = _i == 0;
	locked_in_vain = _i == 1;
	part = open_as(SECOND, false);
	ck_assert_int_ge(part, 0);
	OK(fstat(part, &st));
	ck_assert_uint_gt(st.st_nlink, 0);
	ck_assert(is_there(PART));
	close_fd(&part);
}

/* Some that are too old, one that is not, and what is no file of a spool. */
struct left {
	char old[128], young[128], other[128], root[128];
};

static void leave(struct left *l)
{
	OK(mkdirat(dir, PART, 0700));
	name_of(PART, SECOND, 1, AGE_S + LATER_S + 60, l->old, sizeof(l->old));
	name_of(PART, SECOND, 2, AGE_S + LATER_S - 600, l->young, sizeof(l->young));
	(void)snprintf(l->other, sizeof(l->other), PART "/notes");
	/* The spool's own are spool_expire's, who counts them. */
	name_of("", FIRST, 3, AGE_S + LATER_S + 60, l->root, sizeof(l->root));
	put(l->old);
	put(l->young);
	put(l->other);
	put(l->root);
}

static void check_left(const struct left *l)
{
	ck_assert(!is_there(l->old));
	ck_assert(is_there(l->young) && is_there(l->other));
	ck_assert(is_there(l->root));
}

TEST(nobody_s_get_old_at_the_start)
{
	struct left l;
	int first;

	leave(&l);
	first = open_as(FIRST, true);
	check_left(&l);
	close_fd(&first);
}

/* In ship's sandbox, with a filter that kills. Again and again, in its time. */
static void get_old_later(int first, const char *old)
{
	OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	OK(sandbox_enter(SANDBOX_SHIP, true, first));
	spool_parts_check(&parts);
	if (!is_there(old))
		_exit(2);
	parts.next_ns = clock_boot_ns();
	spool_parts_check(&parts);
	if (parts.next_ns <= clock_boot_ns())
		_exit(3);
	_exit(0);
}

TEST(nobody_s_get_old_later)
{
	int status, first = open_as(FIRST, true);
	struct left l;
	pid_t child;

	leave(&l);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0)
		get_old_later(first, l.old);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	check_left(&l);
	close_fd(&first);
}

TEST(empty_ones_are_removed)
{
	int second = open_as(SECOND, false), first;

	ck_assert_int_ge(second, 0);
	OK(mkdirat(dir, "0000000000003333", 0700));
	OK(mkdirat(dir, "lost+found", 0700));
	OK(symlinkat("lost+found", dir, "0000000000004444"));
	first = open_as(FIRST, true);
	close_fd(&first);
	ck_assert(!is_there("0000000000003333"));
	ck_assert(is_there("lost+found") && is_there("0000000000004444"));
	/* A ship has this one, and will put something into it. */
	ck_assert(is_there(PART));
	put(PART "/one");
	OK(unlinkat(dir, PART "/one", 0));
	close_fd(&second);
	first = open_as(FIRST, true);
	close_fd(&first);
	ck_assert(!is_there(PART));
}
