#include "daemon/handed.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/suite.h"

static struct file_identity file(uint64_t inode)
{
	return (struct file_identity){.device = 1, .inode = inode};
}

static uint32_t add(struct handed *h, uint64_t inode)
{
	const struct file_identity f = file(inode);

	return handed_add(h, &f);
}

/* Each has one number, and it is that of no other. */
TEST(numbers)
{
	struct handed h = {0};

	ck_assert_ptr_null(handed_file(&h, 0));
	ck_assert_ptr_null(handed_file(&h, 1));
	for (uint64_t i = 1; i <= HANDED_MAX; i++)
		ck_assert_uint_eq(add(&h, i), i);
	for (uint64_t i = 1; i <= HANDED_MAX; i++) {
		ck_assert_uint_eq(add(&h, i), i);
		ck_assert_uint_eq(handed_file(&h, (uint32_t)i)->inode, i);
	}
	ck_assert_ptr_null(handed_file(&h, 0));
	ck_assert_ptr_null(handed_file(&h, HANDED_MAX + 1));
	ck_assert_ptr_null(handed_file(&h, UINT32_MAX));
	handed_fini(&h);
	ck_assert_ptr_null(handed_file(&h, 1));
}

/* The oldest goes, and its number is nobody's. */
TEST(too_many)
{
	struct handed h = {0};

	for (uint64_t i = 1; i <= HANDED_MAX + 3; i++)
		ck_assert_uint_eq(add(&h, i), i);
	for (uint32_t i = 1; i <= 3; i++)
		ck_assert_ptr_null(handed_file(&h, i));
	for (uint32_t i = 4; i <= HANDED_MAX + 3; i++)
		ck_assert_uint_eq(handed_file(&h, i)->inode, i);
	ck_assert_uint_eq(add(&h, 1), HANDED_MAX + 4);
	ck_assert_uint_eq(h.size, HANDED_MAX);
	handed_fini(&h);
}

static void look(int fd, struct file_shown *ret)
{
	OK(file_shown_of(fd, 42, 4096, 8192, ret));
}

TEST(who_a_file_is)
{
	char path[] = "/tmp/check_handed.XXXXXX";
	int fd = mkstemp(path);
	struct file_shown before, after;
	struct stat st;

	ck_assert_int_ge(fd, 0);
	look(fd, &before);
	ck_assert_str_eq(before.name, path);
	OK(fstat(fd, &st));
	ck_assert_uint_eq(before.identity.inode, st.st_ino);
	look(fd, &after);
	ck_assert(file_identity_equal(&before.identity, &after.identity));
	ck_assert_int_eq(write(fd, "x", 1), 1);
	look(fd, &after);
	ck_assert(!file_identity_equal(&before.identity, &after.identity));
	OK(unlink(path));
	close_fd(&fd);
	ck_assert_int_eq(file_shown_of(-1, 42, 0, 0, &after), -ENOENT);
}

/* Copies are new each time: it is the memory's place that counts. */
TEST(who_a_copy_is)
{
	struct file_shown first, second;
	int a = memfd_create("copy", MFD_CLOEXEC);
	int b = memfd_create("copy", MFD_CLOEXEC);

	look(a, &first);
	look(b, &second);
	ck_assert_str_eq(first.name, "memory of process 42");
	ck_assert(file_identity_equal(&first.identity, &second.identity));
	OK(file_shown_of(b, 43, 4096, 8192, &second));
	ck_assert(!file_identity_equal(&first.identity, &second.identity));
	OK(file_shown_of(b, 42, 4096, 12288, &second));
	ck_assert(!file_identity_equal(&first.identity, &second.identity));
	close_fd(&a);
	close_fd(&b);
}

/* Of a long path the end is shown. */
TEST(long_names)
{
	char path[PATH_MAX] = "/tmp/", name[NAME_MAX + 1];
	struct file_shown shown;
	int fd;

	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	(void)snprintf(name, 32, "check_handed.%d", (int)getpid());
	name[strlen(name)] = 'z';
	memcpy(path + strlen(path), name, sizeof(name));
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	look(fd, &shown);
	OK(unlink(path));
	ck_assert_uint_eq(strlen(shown.name), FILE_NAME_SHOWN - 1);
	ck_assert_str_eq(shown.name, path + strlen(path) - FILE_NAME_SHOWN + 1);
	close_fd(&fd);
}
