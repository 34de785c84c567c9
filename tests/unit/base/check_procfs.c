#include "lib/base/procfs.h"

#include <string.h>

#include "tests/unit/suite.h"

TEST(paths_are_below_proc_pid)
{
	ck_assert_str_eq(procfs_path(7, "maps").text, "/proc/7/maps");
	ck_assert_str_eq(procfs_path(INT32_MAX, "task/%u/fd/%d", UINT32_MAX, 3).text,
			 "/proc/2147483647/task/4294967295/fd/3");
	ck_assert_str_eq(procfs_own_fd(3).text, "/proc/self/fd/3");
}

TEST(a_link_is_read_up_to_the_size)
{
	char text[16] = "full";

	ck_assert_int_eq(procfs_link("/proc/self/nothing", text, sizeof(text)), -ENOENT);
	ck_assert_str_eq(text, "");
	ck_assert_int_eq(procfs_link(procfs_path(getpid(), "ns/pid").text, text, 5), 0);
	ck_assert_str_eq(text, "pid:");
}

/* A name may contain what looks like its end. */
TEST(fields_of_stat_are_counted_from_the_last_parenthesis)
{
	static const char text[] = "7 (a) R 1 (b) S 4 5 6\n";

	ck_assert_int_eq(strncmp(procfs_stat_field(text, 3), " S", 2), 0);
	ck_assert_uint_eq(procfs_stat_number(text, 4), 4);
	ck_assert_uint_eq(procfs_stat_number(text, 6), 6);
	ck_assert_ptr_null(procfs_stat_field(text, 7));
	ck_assert_uint_eq(procfs_stat_number(text, 7), 0);
	ck_assert_uint_eq(procfs_stat_number("", 3), 0);
}

TEST(numbers_of_a_status_line_are_parsed)
{
	static const char text[] = "Name:\tUid:\t9\nUid:\t1 2\t3\nNone:\t\n"
				   "SigIgn:\t00000000000010a\n12\n";
	uint64_t n[4];

	ck_assert_uint_eq(procfs_numbers(text, "\nUid:", 10, n, 4), 3);
	ck_assert_uint_eq(n[0], 1);
	ck_assert_uint_eq(n[2], 3);
	ck_assert_uint_eq(procfs_numbers(text, "\nUid:", 10, n, 2), 2);
	ck_assert_uint_eq(n[1], 2);
	ck_assert_uint_eq(procfs_numbers(text, "\nSigIgn:", 16, n, 4), 1);
	ck_assert_uint_eq(n[0], 0x10a);
	ck_assert_uint_eq(procfs_numbers(text, "\nGid:", 10, n, 4), 0);
	ck_assert_uint_eq(procfs_numbers(text, "\nName:", 10, n, 4), 0);
}
