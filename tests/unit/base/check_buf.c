#include "lib/base/buf.h"

#include <fcntl.h>
#include <unistd.h>

#include "tests/unit/suite.h"

TEST(buf_wipe_zeroes_and_frees_the_bytes)
{
	struct buf b;

	buf_init(&b, 100);
	buf_wipe(&b);
	ck_assert_int_eq(buf_add_string(&b, "secret"), 0);
	buf_wipe(&b);
	ck_assert_ptr_null(b.data);
	ck_assert_uint_eq(b.len, 0);
	ck_assert_int_eq(buf_add_string(&b, "again"), 0);
	buf_fini(&b);
}

TEST(an_empty_buffer_is_an_empty_string)
{
	struct buf b;

	buf_init(&b, 10);
	ck_assert_str_eq(buf_string(&b), "");
	ck_assert_uint_eq(b.len, 0);
	ck_assert_ptr_null(b.data);
	buf_clear(&b);
	buf_fini(&b);
	buf_fini(NULL);
}

TEST(added_bytes_are_in_order_and_end_with_a_nul)
{
	struct buf b;

	buf_init(&b, 1000);
	OK(buf_add(&b, "a\0b", 3));
	OK(buf_add(&b, NULL, 0));
	OK(buf_add_string(&b, "cd"));
	OK(buf_printf(&b, "%d-%s", 42, "x"));
	ck_assert_uint_eq(b.len, 9);
	ck_assert_mem_eq(b.data, "a\0bcd42-x\0", 10);
	buf_clear(&b);
	ck_assert_str_eq(buf_string(&b), "");
	OK(buf_add_string(&b, "again"));
	ck_assert_str_eq(buf_string(&b), "again");
	buf_fini(&b);
	ck_assert_str_eq(buf_string(&b), "");
	ck_assert_uint_eq(b.max, 1000);
}

/* The maximum holds for each function that adds, and a refusal changes nothing. */
TEST(no_function_adds_more_than_max)
{
	struct buf b;

	buf_init(&b, 8);
	OK(buf_add_string(&b, "12345678"));
	OK(buf_add_string(&b, ""));
	ck_assert_int_eq(buf_add(&b, "9", 1), -E2BIG);
	ck_assert_int_eq(buf_add_string(&b, "9"), -E2BIG);
	ck_assert_int_eq(buf_printf(&b, "%d", 9), -E2BIG);
	ck_assert_str_eq(buf_string(&b), "12345678");
	buf_clear(&b);
	ck_assert_int_eq(buf_add(&b, "123456789", 9), -E2BIG);
	ck_assert_int_eq(buf_add(&b, "", SIZE_MAX), -E2BIG);
	ck_assert_str_eq(buf_string(&b), "");
	buf_fini(&b);
}

/* The size with the NUL must not overflow in a buffer without a limit. */
TEST(sizes_do_not_overflow)
{
	struct buf b;

	buf_init(&b, SIZE_MAX);
	ck_assert_int_eq(buf_add(&b, "", SIZE_MAX), -E2BIG);
	ck_assert_int_eq(buf_add(&b, "", SIZE_MAX - 1), -ENOMEM);
	OK(buf_add_string(&b, "ok"));
	ck_assert_str_eq(buf_string(&b), "ok");
	buf_fini(&b);
}

TEST(a_buffer_grows_up_to_max)
{
	enum { N = 20000 };
	struct buf b;

	buf_init(&b, N);
	for (int i = 0; i < N; i++) {
		char c = (char)('a' + i % 26);

		OK(buf_add(&b, &c, 1));
	}
	for (int i = 0; i < N; i++)
		ck_assert_int_eq(b.data[i], 'a' + i % 26);
	ck_assert_int_eq(b.data[N], '\0');
	ck_assert_int_eq(buf_add(&b, "x", 1), -E2BIG);
	buf_fini(&b);
}

/* Makes a pipe with n bytes and no writer. */
static int pipe_of(size_t n)
{
	int fds[2];

	OK(pipe2(fds, O_CLOEXEC));
	for (size_t i = 0; i < n; i++) {
		char c = (char)('0' + i % 10);

		ck_assert_int_eq(write(fds[1], &c, 1), 1);
	}
	(void)close(fds[1]);
	return fds[0];
}

static int read_of(struct buf *b, size_t n)
{
	int fd = pipe_of(n);
	int r = buf_read_fd(b, fd);

	(void)close(fd);
	return r;
}

/* A secret that moves leaves a copy behind. */
TEST(the_bytes_of_a_reserved_buffer_do_not_move)
{
	enum { N = 20000 };
	const char *place;
	struct buf b;

	buf_init(&b, N);
	OK(buf_reserve(&b));
	place = b.data;
	ck_assert_str_eq(buf_string(&b), "");
	ck_assert_int_eq(read_of(&b, N), 0);
	ck_assert_uint_eq(b.len, N);
	ck_assert_ptr_eq(b.data, place);
	buf_wipe(&b);
	buf_init(&b, SIZE_MAX);
	ck_assert_int_eq(buf_reserve(&b), -ENOMEM);
}

TEST(a_descriptor_is_read_to_its_end_or_to_max)
{
	struct buf b;

	buf_init(&b, 12000);
	OK(buf_add_string(&b, "x"));
	OK(read_of(&b, 0));
	ck_assert_str_eq(buf_string(&b), "x");
	OK(read_of(&b, 9999));
	ck_assert_uint_eq(b.len, 10000);
	ck_assert_mem_eq(b.data, "x01234", 6);
	ck_assert_mem_eq(b.data + 9996, "5678\0", 5);
	/* Exactly: 2,000 bytes fit, 2,001 do not. */
	OK(read_of(&b, 2000));
	ck_assert_uint_eq(b.len, 12000);
	b.len = 10000;
	ck_assert_int_eq(read_of(&b, 2001), -E2BIG);
	ck_assert_uint_eq(b.len, 12000);
	buf_fini(&b);
}

TEST(an_error_of_read_is_passed_on)
{
	struct buf b;
	int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	buf_init(&b, 100);
	ck_assert_int_eq(buf_read_fd(&b, fd), -EISDIR);
	ck_assert_str_eq(buf_string(&b), "");
	(void)close(fd);
	ck_assert_int_eq(buf_read_fd(&b, fd), -EBADF);
	buf_fini(&b);
}
