#include "lib/capture/proc/fuse.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "tests/unit/suite.h"

/* A directory that replaces /proc/PID, with the files that are read. */
static int dir_fd = -1;

static void write_file(const char *name, const char *text)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	ck_assert_int_ge(fd, 0);
	OK(write_all(fd, text, strlen(text)));
	close_fd(&fd);
}

#define STACK "7ffc0000-7ffd0000 rw-p 00000000 00:00 0    [stack]\n"

static void set_up(void)
{
	dir_fd = open(suite_directory(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dir_fd, 0);
	write_file("maps", STACK);
	write_file("mountinfo", "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n");
}

static void tear_down(void)
{
	close_fd(&dir_fd);
}

static const struct {
	const char *maps;
	bool is_fuse;
} mappings[] = {
	{"", false},
	{STACK, false},
	/* Mapped files, and whether they are of FUSE by the mountinfo below. */
	{"1000-2000 r-xp 00000000 08:01 77    /usr/bin/program\n", false},
	{"1000-2000 rw-p 00000000 00:2a 77    /tmp/file\n", false},
	{"1000-2000 rw-p 00000000 00:2b 77    /mnt/a\\040b/file\n", true},
	{"1000-2000 rw-p 00000000 00:2c 77    /mnt/fuse.sshfs\n", true},
	{"1000-2000 rw-p 00000000 08:11 77    /mnt/disk\n", true},
	{STACK "1000-2000 r-xp 00000000 00:2a 77    /tmp/file\n"
	       "3000-4000 r--p 00000000 00:2b 77    /mnt/a/file\n" STACK,
	 true},
	/* The file's device is not among the mounts that the process sees. */
	{"1000-2000 rw-p 00000000 00:ffff 77    /file\n", false},
	{"1000-2000 rw-s 00000000 00:ffff 77    /memfd:x (deleted)\n", false},
	/* Lines that the kernel does not write. */
	{"\n", false},
	{"x x x x", false},
};

FIXTURE(set_up, tear_down)

TESTS(mappings_of_fuse_file_systems_are_found, array_size(mappings))
{
	write_file("mountinfo", "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
				"2 1 0:42 / /tmp rw shared:2 master:1 - tmpfs tmpfs rw\n"
				"3 1 0:43 / /mnt/a rw - fuse hang rw,user_id=0\n"
				"4 1 0:44 / /mnt/b rw - fuse.sshfs host: rw,user_id=0\n"
				"5 1 8:17 / /mnt/c rw - fuseblk /dev/sdb1 rw\n"
				"6 1 0:45 / /mnt/d rw\n\n");
	write_file("maps", mappings[_i].maps);
	ck_assert_int_eq(fuse_is_mapped(dir_fd), mappings[_i].is_fuse);
}

TEST(too_many_mappings_count_as_fuse)
{
	static char big[600 * 1024];
	const size_t line = strlen(STACK);

	for (size_t at = 0; at + line < sizeof(big); at += line)
		memcpy(big + at, STACK, line);
	write_file("maps", big);
	/* Without a FUSE mount no file is of FUSE, so the maps are not read. */
	ck_assert(!fuse_is_mapped(dir_fd));
	write_file("mountinfo", "1 0 0:41 / /sys/fs/fuse/connections rw - fusectl fusectl rw\n");
	ck_assert(!fuse_is_mapped(dir_fd));
	write_file("mountinfo", "1 0 0:43 / /mnt rw - fuse x rw\n");
	ck_assert(fuse_is_mapped(dir_fd));
	OK(unlinkat(dir_fd, "maps", 0));
	ck_assert(fuse_is_mapped(dir_fd));
	write_file("maps", STACK);
	ck_assert(!fuse_is_mapped(dir_fd));
	OK(unlinkat(dir_fd, "mountinfo", 0));
	ck_assert(fuse_is_mapped(dir_fd));
}

/* More FUSE file systems than DEVICES_MAX. */
TEST(too_many_fuse_mounts_count_as_fuse)
{
	char text[300 * 40] = "";
	size_t n = 0;

	for (unsigned int i = 1; i <= 300; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "1 0 0:%u / /mnt rw - fuse x rw\n", i);
	write_file("mountinfo", text);
	ck_assert(fuse_is_mapped(dir_fd));
}

/* The real files of the kernel have the expected form. */
TEST(the_real_files_of_the_kernel_are_read)
{
	int self = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert(!fuse_is_mapped(self));
	close_fd(&self);
}
