#include "daemon/process/process_root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/suite.h"

#define PAGE 4096

static char path[32];
static int file;
static struct owner own;
static char *mapping; /* the second and third page of the file */

static void fill(int fd, char byte, size_t pages)
{
	char page[PAGE];

	memset(page, byte, sizeof(page));
	for (size_t i = 0; i < pages; i++)
		ck_assert_int_eq(write(fd, page, PAGE), PAGE);
}

static void setup(void)
{
	(void)snprintf(path, sizeof(path), "/tmp/check_mapped.XXXXXX");
	OK(owner_read(getpid(), &own));
	file = mkstemp(path);
	ck_assert_int_ge(file, 0);
	fill(file, 'a', 1);
	fill(file, 'b', 2);
	mapping = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, PAGE);
	ck_assert(mapping != MAP_FAILED);
}

static void teardown(void)
{
	(void)unlink(path);
	(void)close(file);
}

static int find(const void *start, size_t pages, struct process_mapping *ret)
{
	return process_mapping_find(getpid(), (uintptr_t)start, (uintptr_t)start + pages * PAGE,
				    ret);
}

static void find_mapping(struct process_mapping *ret)
{
	ck_assert_int_eq(find(mapping, 2, ret), 0);
}

static void check_opens(const struct process_mapping *m)
{
	struct stat its, ours;
	int fd = -1;

	OK(process_mapping_open(&own, m, &fd));
	OK(fstat(fd, &its));
	OK(fstat(file, &ours));
	ck_assert_uint_eq(its.st_ino, ours.st_ino);
	ck_assert_uint_eq(its.st_dev, ours.st_dev);
	(void)close(fd);
}

static void check_refused(const struct process_mapping *m)
{
	int fd = -1;

	ck_assert_int_eq(process_mapping_open(&own, m, &fd), -ENOENT);
	ck_assert_int_eq(fd, -1);
}

FIXTURE(setup, teardown)

TEST(a_mapping_is_found_by_its_exact_range)
{
	struct process_mapping m;
	struct stat st;

	find_mapping(&m);
	OK(fstat(file, &st));
	ck_assert_str_eq(m.path, path);
	ck_assert_uint_eq(m.inode, st.st_ino);
	ck_assert_uint_eq(m.offset, PAGE);
	ck_assert_int_eq(find(mapping, 1, &m), -ENOENT);
	ck_assert_int_eq(find(mapping + PAGE, 1, &m), -ENOENT);
	ck_assert_int_eq(find(NULL, 1, &m), -ENOENT);
	ck_assert_int_lt(process_mapping_find(0, 0, PAGE, &m), 0);
}

TEST(a_mapped_file_is_opened_by_its_path)
{
	struct process_mapping m;

	find_mapping(&m);
	check_opens(&m);
	m.inode++;
	check_refused(&m);
}

/* overlayfs and btrfs report another device than /proc/PID/maps. */
TEST(a_file_of_another_device_must_have_the_mapped_bytes)
{
	struct process_mapping m;

	find_mapping(&m);
	m.device++;
	check_opens(&m);
	m.offset = 0;
	check_refused(&m);
	/* Beyond the end of the file there are no bytes to compare. */
	m.offset = 3ull * PAGE;
	check_refused(&m);
	m.offset = PAGE;
	mapping[2 * PAGE - 1] = 'c';
	check_refused(&m);
}

/* The last page of the mapping is beyond the end of the file. */
TEST(only_bytes_that_the_file_has_are_compared)
{
	struct process_mapping m;

	find_mapping(&m);
	m.device++;
	OK(ftruncate(file, 2 * PAGE));
	check_opens(&m);
}

TEST(a_deleted_or_replaced_file_is_refused)
{
	struct process_mapping m;
	int other;

	find_mapping(&m);
	OK(unlink(path));
	check_refused(&m);
	other = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	ck_assert_int_ge(other, 0);
	fill(other, 'a', 1);
	fill(other, 'b', 2);
	check_refused(&m);
	(void)close(other);
}

/* The path of the mapping leads to another file; /proc/PID/exe leads to the executable. */
TEST(the_executable_is_opened_by_the_link_exe)
{
	struct process_mapping m;
	struct stat st;
	int fd;

	find_mapping(&m);
	OK(stat("/proc/self/exe", &st));
	m.device = st.st_dev;
	m.inode = st.st_ino;
	OK(process_mapping_open(&own, &m, &fd));
	OK(fstat(fd, &st));
	ck_assert_uint_eq(st.st_ino, m.inode);
	(void)close(fd);
}
