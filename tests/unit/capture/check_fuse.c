#include "lib/capture/fuse.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "tests/unit/suite.h"

/* A directory with the files of one of /proc that are read. */
static char dir[] = "/tmp/check_fuse.XXXXXX";
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
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dir_fd, 0);
	OK(mkdirat(dir_fd, "fd", 0700));
	OK(symlinkat("/dev/null", dir_fd, "fd/0"));
	write_file("maps", STACK);
	write_file("mountinfo", "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n");
}

static void tear_down(void)
{
	char name[32];

	for (int i = 0; i < 300; i++) {
		(void)snprintf(name, sizeof(name), "fd/%d", i);
		(void)unlinkat(dir_fd, name, 0);
	}
	(void)unlinkat(dir_fd, "maps", 0);
	(void)unlinkat(dir_fd, "mountinfo", 0);
	(void)unlinkat(dir_fd, "fd", AT_REMOVEDIR);
	close_fd(&dir_fd);
	OK(rmdir(dir));
}

static const struct {
	const char *maps;
	bool near;
} mappings[] = {
	{"", false},
	{STACK, false},
	/* By the types of mountinfo below. */
	{"1000-2000 r-xp 00000000 08:01 77    /usr/bin/program\n", false},
	{"1000-2000 rw-p 00000000 00:2a 77    /tmp/file\n", false},
	{"1000-2000 rw-p 00000000 00:2b 77    /mnt/a\\040b/file\n", true},
	{"1000-2000 rw-p 00000000 00:2c 77    /mnt/fuse.sshfs\n", true},
	{"1000-2000 rw-p 00000000 08:11 77    /mnt/disk\n", true},
	{STACK "1000-2000 r-xp 00000000 00:2a 77    /tmp/file\n"
	       "3000-4000 r--p 00000000 00:2b 77    /mnt/a/file\n" STACK,
	 true},
	/* Where it is mounted is not to be seen. */
	{"1000-2000 rw-p 00000000 00:ffff 77    /file\n", true},
	{"1000-2000 rw-p 00000000 fe:01 77    /file\n", false},
	/* Nowhere, but in the kernel. */
	{"1000-2000 rw-s 00000000 00:ffff 77    /memfd:x (deleted)\n", false},
	{"1000-2000 rw-s 00000000 00:ffff 77    /SYSV00000000 (deleted)\n",
	 false},
	{"1000-2000 rw-s 00000000 00:ffff 77    /dev/zero (deleted)\n", false},
	{"1000-2000 rw-s 00000000 00:ffff 77    anon_inode:[io_uring]\n",
	 false},
	{"1000-2000 rw-s 00000000 00:ffff 77    socket:[4711]\n", false},
	{"1000-2000 rw-s 00000000 00:ffff 77    /dev/zero2\n", true},
	/* No lines of the kernel's. */
	{"\n", false},
	{"x x x x", false},
};

FIXTURE(set_up, tear_down)

TESTS(what_is_mapped, array_size(mappings))
{
	write_file("mountinfo",
		   "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
		   "2 1 0:42 / /tmp rw shared:2 master:1 - tmpfs tmpfs rw\n"
		   "3 1 0:43 / /mnt/a rw - fuse hang rw,user_id=0\n"
		   "4 1 0:44 / /mnt/b rw - fuse.sshfs host: rw,user_id=0\n"
		   "5 1 8:17 / /mnt/c rw - fuseblk /dev/sdb1 rw\n"
		   "6 1 0:45 / /mnt/d rw\n\n");
	write_file("maps", mappings[_i].maps);
	ck_assert_int_eq(fuse_is_near(dir_fd), mappings[_i].near);
}

/* As of overlayfs, before Linux 6.8. */
TEST(what_is_mounted_where_we_are)
{
	char text[128];
	FILE *maps = fopen("/proc/self/mountinfo", "re");
	unsigned int major, minor;

	ck_assert_ptr_nonnull(maps);
	do
		ck_assert_int_eq(
			fscanf(maps, "%*d %*d %u:%u %*[^\n]", &major, &minor),
			2);
	while (major != 0);
	(void)fclose(maps);
	(void)snprintf(text, sizeof(text),
		       "1000-2000 rw-p 00000000 %02x:%02x 77    /file\n", major,
		       minor);
	write_file("maps", text);
	ck_assert(!fuse_is_near(dir_fd));
}

TEST(what_is_open)
{
	char name[32];

	OK(symlinkat("socket:[1]", dir_fd, "fd/1"));
	OK(symlinkat("/home/dev/fuse", dir_fd, "fd/2"));
	OK(symlinkat("/dev/fuse/and/what/does/not/fit/in/the/buffer", dir_fd,
		     "fd/3"));
	ck_assert(!fuse_is_near(dir_fd));
	OK(symlinkat("/dev/fuse", dir_fd, "fd/4"));
	ck_assert(fuse_is_near(dir_fd));
	/* It is not for ever that it is looked for. */
	OK(unlinkat(dir_fd, "fd/4", 0));
	for (int i = 4; i < 300; i++) {
		(void)snprintf(name, sizeof(name), "fd/%d", i);
		OK(symlinkat("/dev/null", dir_fd, name));
	}
	ck_assert(!fuse_is_near(dir_fd));
}

TEST(what_cannot_be_told)
{
	static char big[600 * 1024];
	const size_t line = strlen(STACK);

	for (size_t at = 0; at + line < sizeof(big); at += line)
		memcpy(big + at, STACK, line);
	write_file("maps", big);
	ck_assert(fuse_is_near(dir_fd));
	OK(unlinkat(dir_fd, "maps", 0));
	ck_assert(fuse_is_near(dir_fd));
	write_file("maps", "1000-2000 rw-p 00000000 08:01 77    /file\n");
	ck_assert(!fuse_is_near(dir_fd));
	OK(unlinkat(dir_fd, "mountinfo", 0));
	ck_assert(fuse_is_near(dir_fd));
	write_file("mountinfo", "");
	write_file("maps", STACK);
	ck_assert(!fuse_is_near(dir_fd));
	OK(unlinkat(dir_fd, "fd/0", 0));
	OK(unlinkat(dir_fd, "fd", AT_REMOVEDIR));
	ck_assert(fuse_is_near(dir_fd));
}

/* More file systems than anybody has files of mapped. */
TEST(many_file_systems)
{
	char text[64 * 64] = "";
	size_t n = 0;

	for (unsigned int i = 1; i <= 40; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "1-2 r--p 0 08:%02x 77    /file\n", i);
	write_file("maps", text);
	ck_assert(fuse_is_near(dir_fd));
}

/* The kernel's files say what they are expected to. */
TEST(this_process)
{
	int self = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int memfd = memfd_create("check", MFD_CLOEXEC), fuse, shm;
	const bool before = fuse_is_near(self);
	void *at;

	OK(ftruncate(memfd, 4096));
	at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, memfd, 0);
	ck_assert_ptr_ne(at, MAP_FAILED);
	at = mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(at, MAP_FAILED);
	shm = shmget(IPC_PRIVATE, 4096, 0600);
	ck_assert_int_ge(shm, 0);
	at = shmat(shm, NULL, 0);
	(void)shmctl(shm, IPC_RMID, NULL);
	ck_assert_ptr_ne(at, MAP_FAILED);
	ck_assert_int_eq(fuse_is_near(self), before);
	/* Not everywhere there is one, or it may be opened. */
	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fuse >= 0)
		ck_assert(fuse_is_near(self));
	close_fd(&fuse);
	close_fd(&memfd);
	close_fd(&self);
}
