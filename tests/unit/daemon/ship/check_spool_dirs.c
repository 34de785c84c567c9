/* The spool's directories: which DSN uses which one, and when files are removed. */
#include "daemon/ship/spool_dirs.h"

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
#include "lib/ship/spool.h"
#include "tests/unit/suite.h"

#define FIRST  UINT64_C(0x1111)
#define SECOND UINT64_C(0x2222)
#define SUBDIR "0000000000002222"
#define AGE_S  1000
/* The ship of a DSN has removed its own files by then: GRACE_MS. */
#define GRACE_S 3600

static int dir;
static struct spool_dirs dirs;

/*
 * mkdirat() and flock() replace libc's: as often as these say, another ship removes the empty
 * subdirectory right after mkdirat() or before flock().
 */
static unsigned int removed_after_mkdir, removed_before_lock;

static void remove_subdir(unsigned int *left)
{
	if (*left == 0)
		return;
	(*left)--;
	OK(unlinkat(dir, SUBDIR, AT_REMOVEDIR));
}

int mkdirat(int fd, const char *name, mode_t mode)
{
	const long r = syscall(SYS_mkdirat, fd, name, mode);

	remove_subdir(&removed_after_mkdir);
	return (int)r;
}

int flock(int fd, int operation)
{
	remove_subdir(&removed_before_lock);
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

/* Makes the path of a file in a subdirectory, or in the spool's directory if that is "". */
static void name_of(const char *subdir, uint64_t dsn, uint8_t n, uint64_t age_s, char *ret,
		    size_t size)
{
	const struct spool_entry e = {
		.time_ms = clock_wall_ns() / NS_PER_MS - age_s * 1000,
		.dsn = dsn,
		.id = {n},
	};
	char name[SPOOL_NAME_SIZE];

	spool_name_format(&e, name);
	(void)snprintf(ret, size, "%s%s%s", subdir, *subdir == '\0' ? "" : "/", name);
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

/* Opens the directory of a DSN as its ship does at the start. */
static int open_as(uint64_t dsn, bool first)
{
	const struct msg_init init = {
		.spool_dsn = dsn,
		.spool_is_first = first,
		.spool_age_s = AGE_S,
	};

	return spool_dirs_open(dup(dir), &init, &dirs);
}

FIXTURE(set_up, tear_down)

TEST(files_move_when_a_dsn_becomes_the_first_or_another)
{
	char own[128], left[128], moved[128 + sizeof(SUBDIR)];
	int first = open_as(FIRST, true), second;
	struct stat a, b;

	ck_assert_int_ge(first, 0);
	ck_assert(fstat(first, &a) == 0 && fstat(dir, &b) == 0);
	ck_assert_uint_eq(a.st_ino, b.st_ino);
	ck_assert(!is_there(SUBDIR));
	/* SECOND was the first DSN in an earlier run. */
	name_of("", SECOND, 1, 0, left, sizeof(left));
	name_of("", FIRST, 2, 0, own, sizeof(own));
	put(left);
	put(own);
	second = open_as(SECOND, false);
	ck_assert_int_ge(second, 0);
	ck_assert_int_eq(dirs.dir_fd, -1);
	(void)snprintf(moved, sizeof(moved), SUBDIR "/%s", left);
	ck_assert(!is_there(left) && is_there(moved) && is_there(own));
	/* SECOND becomes the first DSN. */
	close_fd(&second);
	close_fd(&first);
	first = open_as(SECOND, true);
	ck_assert(is_there(left) && !is_there(moved));
	close_fd(&first);
}

TESTS(a_subdirectory_removed_meanwhile_is_made_again, 2)
{
	struct stat st;
	int subdir;

	removed_after_mkdir = _i == 0;
	removed_before_lock = _i == 1;
	subdir = open_as(SECOND, false);
	ck_assert_int_ge(subdir, 0);
	OK(fstat(subdir, &st));
	ck_assert_uint_gt(st.st_nlink, 0);
	ck_assert(is_there(SUBDIR));
	close_fd(&subdir);
}

/* Files that were left: too old, young, no file of a spool, and one of the first DSN. */
struct left {
	char old[128], young[128], other[128], root[128];
};

static void leave(struct left *l)
{
	OK(mkdirat(dir, SUBDIR, 0700));
	name_of(SUBDIR, SECOND, 1, AGE_S + GRACE_S + 60, l->old, sizeof(l->old));
	name_of(SUBDIR, SECOND, 2, AGE_S + GRACE_S - 600, l->young, sizeof(l->young));
	(void)snprintf(l->other, sizeof(l->other), SUBDIR "/notes");
	/* spool_expire() removes and counts the old files of the first DSN. */
	name_of("", FIRST, 3, AGE_S + GRACE_S + 60, l->root, sizeof(l->root));
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

TEST(old_files_of_other_dsns_are_removed_at_the_start)
{
	struct left l;
	int first;

	leave(&l);
	first = open_as(FIRST, true);
	check_left(&l);
	close_fd(&first);
}

/* In ship's sandbox, with a filter that kills: removes nothing before the check is due. */
static void check_in_sandbox(int first, const char *old)
{
	OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	OK(sandbox_enter(SANDBOX_SHIP, true, first));
	spool_dirs_check(&dirs);
	if (!is_there(old))
		_exit(2);
	dirs.next_ns = clock_boot_ns();
	spool_dirs_check(&dirs);
	if (dirs.next_ns <= clock_boot_ns())
		_exit(3);
	_exit(0);
}

TEST(old_files_of_other_dsns_are_removed_later)
{
	int status, first = open_as(FIRST, true);
	struct left l;
	pid_t child;

	leave(&l);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0)
		check_in_sandbox(first, l.old);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	check_left(&l);
	close_fd(&first);
}

TEST(empty_subdirectories_are_removed_at_the_start)
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
	/* The ship of SECOND has locked this one. */
	ck_assert(is_there(SUBDIR));
	put(SUBDIR "/one");
	OK(unlinkat(dir, SUBDIR "/one", 0));
	close_fd(&second);
	first = open_as(FIRST, true);
	close_fd(&first);
	ck_assert(!is_there(SUBDIR));
}
