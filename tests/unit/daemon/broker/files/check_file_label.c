/* The identity and the name of a file that is opened for unwind. */
#include "daemon/broker/files/file_label.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/suite.h"

static void look(int fd, struct file_label *ret)
{
	OK(file_label_of(fd, 42, 4096, 8192, ret));
}

TEST(a_modified_file_has_another_identity)
{
	char path[] = "/tmp/check_file_label.XXXXXX";
	int fd = mkstemp(path);
	struct file_label before, after;
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
	ck_assert_int_eq(file_label_of(-1, 42, 0, 0, &after), -ENOENT);
}

/* Each copy is a new memfd, so its inode does not identify it. */
TEST(copied_memory_is_identified_by_process_and_addresses)
{
	struct file_label first, second;
	int a = memfd_create("copy", MFD_CLOEXEC);
	int b = memfd_create("copy", MFD_CLOEXEC);

	look(a, &first);
	look(b, &second);
	ck_assert_str_eq(first.name, "memory of process 42");
	ck_assert(file_identity_equal(&first.identity, &second.identity));
	OK(file_label_of(b, 43, 4096, 8192, &second));
	ck_assert(!file_identity_equal(&first.identity, &second.identity));
	OK(file_label_of(b, 42, 4096, 12288, &second));
	ck_assert(!file_identity_equal(&first.identity, &second.identity));
	close_fd(&a);
	close_fd(&b);
}

TEST(the_beginning_of_a_long_path_is_cut_off)
{
	char path[PATH_MAX] = "/tmp/", name[NAME_MAX + 1];
	struct file_label label;
	int fd;

	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	(void)snprintf(name, 32, "check_file_label.%d", (int)getpid());
	name[strlen(name)] = 'z';
	memcpy(path + strlen(path), name, sizeof(name));
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	look(fd, &label);
	OK(unlink(path));
	ck_assert_uint_eq(strlen(label.name), FILE_LABEL_SIZE - 1);
	ck_assert_str_eq(label.name, path + strlen(path) - FILE_LABEL_SIZE + 1);
	close_fd(&fd);
}
