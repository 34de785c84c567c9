#include "lib/base/small_file.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/suite.h"

TEST(a_file_below_a_directory_is_read)
{
	int dir = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char comm[17] = "";
	char text[64];
	size_t n;

	ck_assert_int_ge(dir, 0);
	OK(small_file_read(dir, "comm", text, sizeof(text)));
	n = strlen(text);
	ck_assert_uint_gt(n, 1);
	ck_assert_int_eq(text[n - 1], '\n');
	/* A longer text is cut. */
	memset(comm, 'x', sizeof(comm) - 1);
	OK(small_file_read(dir, "comm", comm, 4));
	ck_assert_uint_eq(strlen(comm), 3);
	ck_assert_int_eq(strncmp(comm, text, 3), 0);
	ck_assert_int_eq(comm[4], 'x');
	OK(small_file_read(dir, "comm", comm, 1));
	ck_assert_str_eq(comm, "");
	close_fd(&dir);
}

TEST(an_empty_file_is_an_empty_text)
{
	char text[8] = "full";

	OK(small_file_read(AT_FDCWD, "/dev/null", text, sizeof(text)));
	ck_assert_str_eq(text, "");
}

TEST(after_an_error_the_text_is_empty)
{
	char text[8] = "full";

	ck_assert_int_eq(small_file_read(AT_FDCWD, "/proc/self/nothing", text, sizeof(text)),
			 -ENOENT);
	ck_assert_str_eq(text, "");
	ck_assert_int_eq(small_file_read(AT_FDCWD, "/proc", text, sizeof(text)), -EISDIR);
	ck_assert_int_eq(small_file_read(-1, "comm", text, sizeof(text)), -EBADF);
}
