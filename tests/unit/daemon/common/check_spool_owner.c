/* Which directories root gives to the present account. Needs root. */
#include "daemon/common/spool_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/suite.h"

#define FORMER 12345
#define OWN    65523
#define OTHER  54321
#define CHUNK  "0000019aa0000000-0123456789abcdef0123456789abcdef-fedcba9876543210"
#define SUBDIR "fedcba9876543210"

static const char *parent;
static int dir = -1;

static void make(const char *name, uint32_t uid)
{
	int fd = openat(dir, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	OK(fchown(fd, uid, uid));
	close_fd(&fd);
}

static void remove_all(void)
{
	static const char *const names[] = {CHUNK ".gz",     CHUNK ".v1.gz.bad",
					    "." CHUNK ".gz", "link",
					    "letter",	     SUBDIR "/" CHUNK ".gz"};

	for (size_t i = 0; i < array_size(names); i++)
		(void)unlinkat(dir, names[i], 0);
	(void)unlinkat(dir, SUBDIR, AT_REMOVEDIR);
}

static void set_up(void)
{
	char path[256];

	if (parent == NULL)
		parent = suite_directory();
	(void)snprintf(path, sizeof(path), "%s/spool", parent);
	OK(chmod(parent, 0755));
	(void)mkdir(path, 0700);
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dir, 0);
	remove_all();
	OK(chmod(path, 0700));
	OK(chown(path, FORMER, FORMER));
	make(CHUNK ".gz", FORMER);
}

static void tear_down(void)
{
	remove_all();
	close_fd(&dir);
}

static uint32_t owner(const char *name)
{
	struct stat st;

	OK(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW));
	return st.st_uid;
}

static void refused(void)
{
	ck_assert_int_eq(spool_owner_check(dir, true, OWN), -EPERM);
	ck_assert_int_eq(spool_owner_change(dir, true, OWN, OWN), -EPERM);
	ck_assert_uint_eq(owner("."), FORMER);
	ck_assert_uint_eq(owner(CHUNK ".gz"), FORMER);
}

FIXTURE(set_up, tear_down)

TEST(files_of_our_names_get_the_account)
{
	if (geteuid() != 0)
		return;
	make(CHUNK ".v1.gz.bad", 0);
	make("." CHUNK ".gz", OWN);
	OK(mkdirat(dir, SUBDIR, 0700));
	OK(fchownat(dir, SUBDIR, FORMER, FORMER, 0));
	make(SUBDIR "/" CHUNK ".gz", FORMER);
	OK(spool_owner_check(dir, false, OWN));
	ck_assert_uint_eq(owner(CHUNK ".gz"), FORMER);
	OK(spool_owner_change(dir, false, OWN, OWN));
	ck_assert_uint_eq(owner("."), OWN);
	ck_assert_uint_eq(owner(CHUNK ".gz"), OWN);
	ck_assert_uint_eq(owner(CHUNK ".v1.gz.bad"), OWN);
	ck_assert_uint_eq(owner("." CHUNK ".gz"), OWN);
	ck_assert_uint_eq(owner(SUBDIR), OWN);
	ck_assert_uint_eq(owner(SUBDIR "/" CHUNK ".gz"), OWN);
}

TEST(what_is_not_ours_is_refused)
{
	if (geteuid() != 0)
		return;
	make("letter", FORMER);
	refused();
	OK(unlinkat(dir, "letter", 0));
	make("." CHUNK ".gz", OTHER);
	refused();
	OK(unlinkat(dir, "." CHUNK ".gz", 0));
	/* A name of ours, but a link, or a directory in a directory. */
	OK(symlinkat("letter", dir, "." CHUNK ".gz"));
	refused();
	OK(unlinkat(dir, "." CHUNK ".gz", 0));
	OK(linkat(dir, CHUNK ".gz", dir, "." CHUNK ".gz", 0));
	refused();
	OK(unlinkat(dir, "." CHUNK ".gz", 0));
	OK(spool_owner_check(dir, false, OWN));
}

TEST(others_must_have_had_no_right)
{
	if (geteuid() != 0)
		return;
	OK(fchmodat(dir, ".", 0750, 0));
	refused();
	OK(fchmodat(dir, ".", 0700, 0));
	OK(chmod(parent, 01777));
	refused();
	OK(chmod(parent, 0755));
	OK(spool_owner_check(dir, false, OWN));
}

TEST(an_empty_directory_is_ours_only_by_its_path)
{
	if (geteuid() != 0)
		return;
	OK(unlinkat(dir, CHUNK ".gz", 0));
	ck_assert_int_eq(spool_owner_check(dir, false, OWN), -EPERM);
	OK(spool_owner_check(dir, true, OWN));
}
