#include "lib/capture/descriptor.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "tests/unit/suite.h"

/* The process looked at is this one. */
static enum descriptor_kind kind(int fd)
{
	enum descriptor_kind k =
		descriptor_kind((uint32_t)getpid(), (uint64_t)fd);

	ck_assert_int_ge(fd, 0);
	/* The kernel takes no more of it either. */
	ck_assert_int_eq(descriptor_kind((uint32_t)getpid(),
					 (uint64_t)fd | UINT64_C(1) << 32),
			 k);
	return k;
}

static bool is_socket(int fd)
{
	return descriptor_is_socket((uint32_t)getpid(), (uint64_t)fd);
}

START_TEST(pipes)
{
	int pair[2];

	ck_assert_int_eq(pipe2(pair, O_CLOEXEC), 0);
	ck_assert_int_eq(kind(pair[0]), DESCRIPTOR_PIPE);
	ck_assert_int_eq(kind(pair[1]), DESCRIPTOR_PIPE);
	ck_assert(!is_socket(pair[0]));
	close_fd(&pair[0]);
	close_fd(&pair[1]);
}
END_TEST

static const struct {
	int family, type, protocol;
	enum descriptor_kind kind;
} sockets[] = {
	{AF_INET, SOCK_STREAM, 0, DESCRIPTOR_STREAM},
	{AF_INET, SOCK_DGRAM, 0, DESCRIPTOR_DATAGRAM},
	{AF_UNIX, SOCK_STREAM, 0, DESCRIPTOR_STREAM},
	{AF_UNIX, SOCK_DGRAM, 0, DESCRIPTOR_OTHER},
	{AF_UNIX, SOCK_SEQPACKET, 0, DESCRIPTOR_OTHER},
	{AF_NETLINK, SOCK_RAW, 0, DESCRIPTOR_OTHER},
};

START_TEST(kinds_of_sockets)
{
	int fd = socket(sockets[_i].family, sockets[_i].type | SOCK_CLOEXEC,
			sockets[_i].protocol);

	ck_assert_int_eq(kind(fd), sockets[_i].kind);
	ck_assert(is_socket(fd));
	close_fd(&fd);
}
END_TEST

static const struct {
	const char *path;
	enum descriptor_kind kind;
} files[] = {
	{"/proc/self/exe", DESCRIPTOR_REGULAR},
	{"/dev/zero", DESCRIPTOR_SOURCE},
	{"/dev/urandom", DESCRIPTOR_SOURCE},
	{"/dev/null", DESCRIPTOR_OTHER},
	{"/dev/ptmx", DESCRIPTOR_TTY},
	{"/", DESCRIPTOR_OTHER},
};

START_TEST(kinds_of_files)
{
	int fd = open(files[_i].path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	ck_assert_int_eq(kind(fd), files[_i].kind);
	ck_assert(!is_socket(fd));
	close_fd(&fd);
}
END_TEST

START_TEST(nothing_to_look_at)
{
	int fd = epoll_create1(EPOLL_CLOEXEC), was = fd;

	ck_assert_int_eq(kind(fd), DESCRIPTOR_OTHER);
	close_fd(&fd);
	ck_assert_int_eq(kind(was), DESCRIPTOR_OTHER);
	ck_assert(!is_socket(was));
	ck_assert_int_eq(descriptor_kind(0, 0), DESCRIPTOR_OTHER);
	ck_assert(!descriptor_is_socket(0, 0));
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("descriptor");
	TCase *tc = tcase_create("kinds");

	tcase_add_test(tc, pipes);
	tcase_add_loop_test(tc, kinds_of_sockets, 0,
			    sizeof(sockets) / sizeof(sockets[0]));
	tcase_add_loop_test(tc, kinds_of_files, 0,
			    sizeof(files) / sizeof(files[0]));
	tcase_add_test(tc, nothing_to_look_at);
	suite_add_tcase(s, tc);
	return s;
}
