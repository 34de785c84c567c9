#include "lib/capture/proc/memory.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/suite.h"

#define PAGES 64

static size_t page;
static uint8_t *area;
static uint8_t copy[(PAGES + 1) * 65536];
static int pagemap_fd;
static struct memory_seen seen;

static void set_up(void)
{
	int proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	page = (size_t)getpagesize();
	ck_assert_int_ge(proc_fd, 0);
	OK(memory_open(proc_fd, (uint32_t)getpid(), &pagemap_fd));
	close_fd(&proc_fd);
	/* An inaccessible page before the area, and one after it. */
	area = mmap(NULL, (PAGES + 2) * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(area, MAP_FAILED);
	area += page;
	/* With huge pages, touching one page would also allocate its neighbours. */
	(void)madvise(area, PAGES * page, MADV_NOHUGEPAGE);
	OK(mprotect(area, PAGES * page, PROT_READ | PROT_WRITE));
	memset(copy, 0xa5, sizeof(copy));
	seen = (struct memory_seen){0};
}

static void tear_down(void)
{
	(void)munmap(area - page, (PAGES + 2) * page);
	close_fd(&pagemap_fd);
}

static void touch(size_t first, size_t n)
{
	for (size_t i = first * page; i < (first + n) * page; i++)
		area[i] = (uint8_t)(i / page + 1);
}

static ssize_t take(size_t offset, size_t size, size_t hole_max)
{
	return memory_read(pagemap_fd, &seen, getpid(), (uintptr_t)area + offset, copy, size,
			   hole_max);
}

/*
 * Checks that the first n bytes of the copy are those of the area from offset on, and that no more
 * was copied.
 */
static void check_copy(size_t offset, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ck_assert_uint_eq(copy[i], area[offset + i]);
	ck_assert_uint_eq(copy[n], 0xa5);
}

FIXTURE(set_up, tear_down)

TEST(pages_in_memory_are_copied)
{
	touch(0, PAGES);
	ck_assert_int_eq(take(100, 5 * page, 0), (ssize_t)(5 * page));
	check_copy(100, 5 * page);
	ck_assert_int_eq(take(page - 1, 1, 0), 1);
	ck_assert_int_eq(take(7, PAGES * page, 0), (ssize_t)(PAGES * page - 7));
}

/* Returns true if page n does not exist, so it was not read: a read would have made it. */
static bool is_untouched(size_t n)
{
	uint64_t entry;

	ck_assert_int_eq(pread(pagemap_fd, &entry, sizeof(entry),
			       (off_t)(((uintptr_t)area / page + n) * sizeof(entry))),
			 sizeof(entry));
	return entry >> 62 == 0;
}

TEST(a_hole_is_zeros_and_stays_a_hole)
{
	touch(0, 2);
	touch(5, 1);
	ck_assert_int_eq(take(50, 6 * page - 50, 3), (ssize_t)(6 * page - 50));
	for (size_t i = 2; i < 5; i++)
		ck_assert(is_untouched(i));
	check_copy(50, 6 * page - 50);
}

/* The pagemap is not read again for pages that were all in memory, until seen is emptied. */
TEST(pagemap_is_not_read_again_for_pages_that_were_in_memory)
{
	touch(0, 4);
	ck_assert_int_eq(take(page, 2 * page, 0), (ssize_t)(2 * page));
	ck_assert_uint_eq(seen.lo, (uintptr_t)area + page);
	ck_assert_uint_eq(seen.hi, (uintptr_t)area + 3 * page);
	OK(madvise(area + 2 * page, page, MADV_DONTNEED));
	/* The page is read without a check, so it exists again. */
	ck_assert_int_eq(take(page + 8, 2 * page - 8, 0), (ssize_t)(2 * page - 8));
	ck_assert(!is_untouched(2));
	/* A range that goes beyond the pages seen is checked. */
	OK(madvise(area + 2 * page, page, MADV_DONTNEED));
	ck_assert_int_eq(take(page, 3 * page, 0), (ssize_t)page);
	ck_assert(is_untouched(2));
	seen = (struct memory_seen){0};
	ck_assert_int_eq(take(page, 2 * page, 0), (ssize_t)page);
	ck_assert_uint_eq(seen.hi, 0);
	ck_assert(is_untouched(2));
}

TEST(a_hole_longer_than_hole_max_ends_the_copy)
{
	touch(0, 2);
	touch(5, 1);
	ck_assert_int_eq(take(0, 6 * page, 2), (ssize_t)(2 * page));
	check_copy(0, 2 * page);
}

TEST(the_copy_ends_after_the_last_page_in_memory)
{
	touch(0, 2);
	ck_assert_int_eq(take(0, PAGES * page, PAGES), (ssize_t)(2 * page));
}

TEST(a_hole_at_the_start_is_efault)
{
	touch(1, 1);
	ck_assert_int_eq(take(page - 8, 100, 0), -EFAULT);
	ck_assert_int_eq(take(10 * page, page, PAGES), -EFAULT);
	ck_assert_int_eq(take(page - 8, 100, 1), 100);
	check_copy(page - 8, 100);
}

/* The page that cannot be read is in memory. */
TEST(an_unreadable_page_ends_the_copy)
{
	touch(0, 6);
	OK(mprotect(area + 4 * page, page, PROT_NONE));
	ck_assert_int_eq(take(0, 6 * page, 0), (ssize_t)(4 * page));
	/* Pages of zeros before the unreadable page are valid bytes. */
	OK(madvise(area + 2 * page, 2 * page, MADV_DONTNEED));
	ck_assert_int_eq(take(0, 6 * page, PAGES), (ssize_t)(4 * page));
	OK(mprotect(area, page, PROT_NONE));
	ck_assert_int_eq(take(0, 6 * page, PAGES), -EFAULT);
}

TEST(invalid_addresses_are_efault)
{
	const uint64_t nowhere[] = {0, 8, UINT64_MAX, UINT64_MAX - 4096,
				    UINT64_C(0xffff800000000000)};

	for (size_t i = 0; i < array_size(nowhere); i++)
		ck_assert_int_lt(
			memory_read(pagemap_fd, &seen, getpid(), nowhere[i], copy, 100, PAGES), 0);
	ck_assert_int_eq(take(0, 0, PAGES), -EFAULT);
	/*
	 * The kernel is not asked for the last page of all, because the address of its end would
	 * overflow.
	 */
	ck_assert_int_eq(
		memory_read(pagemap_fd, NULL, getpid(), UINT64_MAX - page, copy, page / 2, PAGES),
		-EFAULT);
	ck_assert_int_eq(memory_read(pagemap_fd, NULL, getpid(), UINT64_MAX - 3 * page, copy,
				     page / 2, PAGES),
			 -ESRCH);
}

TEST(without_a_pagemap_all_pages_are_read)
{
	touch(0, 2);
	touch(5, 1);
	close_fd(&pagemap_fd);
	ck_assert_int_eq(take(0, PAGES * page, 0), (ssize_t)(PAGES * page));
	check_copy(0, PAGES * page);
	/* The page after the area cannot be read. */
	ck_assert_int_eq(take(page, PAGES * page, 0), (ssize_t)((PAGES - 1) * page));
}

/*
 * The pages would have to be filled in by a thread that handles the userfaultfd. The test has no
 * such thread.
 */
TEST(a_missing_page_below_a_userfaultfd_is_not_read)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {
		.range = {.start = (uintptr_t)area + 2 * page, .len = 3 * page},
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	if (fd < 0)
		return; /* usually permitted to root only */
	touch(0, 2);
	touch(5, 1);
	OK(ioctl(fd, UFFDIO_API, &api));
	OK(ioctl(fd, UFFDIO_REGISTER, &range));
	ck_assert_int_eq(take(0, 6 * page, PAGES), (ssize_t)(6 * page));
	ck_assert_uint_eq(copy[2 * page], 0);
	ck_assert_uint_eq(copy[5 * page - 1], 0);
	ck_assert_uint_eq(copy[5 * page], 6);
	close_fd(&fd);
}
