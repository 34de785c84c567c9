#include "lib/capture/proc/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/util.h"
#include "tests/unit/suite.h"

/* Returns the kind of a descriptor of the test's process. */
static enum descriptor_kind kind(int fd)
{
	enum descriptor_kind k = descriptor_kind((uint32_t)getpid(), (uint64_t)fd);

	ck_assert_int_ge(fd, 0);
	/* The kernel, too, uses the lower 32 bits only. */
	ck_assert_int_eq(descriptor_kind((uint32_t)getpid(), (uint64_t)fd | UINT64_C(1) << 32), k);
	return k;
}

static bool is_socket(int fd)
{
	return descriptor_is_socket((uint32_t)getpid(), (uint64_t)fd);
}

TEST(both_ends_of_a_pipe_are_pipes)
{
	int pair[2];

	OK(pipe2(pair, O_CLOEXEC));
	ck_assert_int_eq(kind(pair[0]), DESCRIPTOR_PIPE);
	ck_assert_int_eq(kind(pair[1]), DESCRIPTOR_PIPE);
	ck_assert(!is_socket(pair[0]));
	close_fd(&pair[0]);
	close_fd(&pair[1]);
}

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

TESTS(kinds_of_sockets, array_size(sockets))
{
	int fd = socket(sockets[_i].family, sockets[_i].type | SOCK_CLOEXEC, sockets[_i].protocol);

	ck_assert_int_eq(kind(fd), sockets[_i].kind);
	ck_assert(is_socket(fd));
	close_fd(&fd);
}

static const char *const files[] = {"/proc/self/exe", "/dev/zero", "/dev/null", "/dev/ptmx", "/"};

TESTS(other_files_have_no_kind, array_size(files))
{
	int fd = open(files[_i], O_RDONLY | O_CLOEXEC | O_NOCTTY);

	ck_assert_int_eq(kind(fd), DESCRIPTOR_OTHER);
	ck_assert(!is_socket(fd));
	close_fd(&fd);
}

static bool is_pty(int fd)
{
	return descriptor_is_pty((uint32_t)getpid(), (uint64_t)fd);
}

TEST(both_ends_of_a_pseudoterminal)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	int slave;

	OK(unlockpt(master));
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	ck_assert(is_pty(master));
	ck_assert(is_pty(slave));
	ck_assert(!is_pty(zero));
	close_fd(&slave);
	ck_assert(!is_pty(slave));
	close_fd(&master);
	close_fd(&zero);
}

static int ask(pid_t pid, int fd, struct descriptor_socket *ret)
{
	return descriptor_socket(pid, (uint32_t)pid, (uint64_t)fd, ret);
}

static void limit(int fd, int option, long s, long us)
{
	const struct timeval tv = {.tv_sec = s, .tv_usec = us};

	OK(setsockopt(fd, SOL_SOCKET, option, &tv, sizeof(tv)));
}

TESTS(timeouts_of_sockets, suite_has_getfd() ? array_size(sockets) : 0)
{
	int fd = socket(sockets[_i].family, sockets[_i].type | SOCK_CLOEXEC, sockets[_i].protocol);
	struct descriptor_socket s;

	OK(ask(getpid(), fd, &s));
	ck_assert_uint_eq(s.receive_ns, 0);
	ck_assert_uint_eq(s.send_ns, 0);
	ck_assert_int_eq(s.is_unix, sockets[_i].family == AF_UNIX);
	limit(fd, SO_RCVTIMEO, 3, 500000);
	OK(ask(getpid(), fd, &s));
	ck_assert_uint_eq(s.receive_ns, 7 * NS_PER_SEC / 2);
	ck_assert_uint_eq(s.send_ns, 0);
	limit(fd, SO_SNDTIMEO, 70, 0);
	OK(ask(getpid(), fd, &s));
	ck_assert_uint_eq(s.send_ns, 70 * NS_PER_SEC);
	close_fd(&fd);
}

/* The kernel accepts timeouts of more seconds than fit into 64 bits of nanoseconds. */
TEST_IF(timeouts_of_centuries_are_none, suite_has_getfd())
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct descriptor_socket s;

	limit(fd, SO_RCVTIMEO, 18446744074, 0);
	limit(fd, SO_SNDTIMEO, CLOCK_DURATION_MAX_S, 0);
	OK(ask(getpid(), fd, &s));
	ck_assert_uint_eq(s.receive_ns, 0);
	ck_assert_uint_eq(s.send_ns, (uint64_t)CLOCK_DURATION_MAX_S * NS_PER_SEC);
	limit(fd, SO_RCVTIMEO, INT64_MAX / 1000, 0);
	limit(fd, SO_SNDTIMEO, CLOCK_DURATION_MAX_S + 1, 0);
	OK(ask(getpid(), fd, &s));
	ck_assert_uint_eq(s.receive_ns, 0);
	ck_assert_uint_eq(s.send_ns, 0);
	close_fd(&fd);
}

/*
 * A socket that only a child has. After the call the child still has it, and no other process does.
 */
TEST_IF(sockets_of_another_process_are_read_and_closed, suite_has_getfd())
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), was = fd;
	int end[2];
	struct descriptor_socket s;
	pid_t child;
	char byte;

	OK(pipe2(end, O_CLOEXEC));
	limit(fd, SO_RCVTIMEO, 3, 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		close_fd(&end[1]);
		(void)!read(end[0], &byte, 1);
		_exit(fcntl(fd, F_GETFD) < 0);
	}
	close_fd(&fd);
	OK(ask(child, was, &s));
	ck_assert_uint_eq(s.receive_ns, 3 * NS_PER_SEC);
	/*
	 * This process does not have the descriptor: its table is not that of the child's thread.
	 */
	ck_assert_int_lt(descriptor_socket(getpid(), (uint32_t)child, (uint64_t)was, &s), 0);
	ck_assert_int_eq(ask(getpid(), was, &s), -ENOTSOCK);
	ck_assert_int_eq(ask(getpid(), end[0], &s), -ENOTSOCK);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(fd, was);
	ck_assert_int_eq(descriptor_socket(getpid(), (uint32_t)child, (uint64_t)was, &s),
			 -ENOTSOCK);
	close_fd(&fd);
	close_fd(&end[1]);
	ck_assert_int_eq(waitpid(child, &fd, 0), child);
	ck_assert_int_eq(fd, 0);
}

/* Nobody receives at the address, so the socket keeps an error for its next call. */
TESTS(the_error_of_a_blocking_socket_is_cleared, suite_has_getfd() ? 2 : 0)
{
	const int flags = _i == 1 ? SOCK_NONBLOCK : 0;
	struct sockaddr_in name = {.sin_family = AF_INET};
	int other = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | flags, 0);
	socklen_t size = sizeof(name);
	char byte = 0;

	name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	OK(bind(other, (void *)&name, sizeof(name)));
	OK(getsockname(other, (void *)&name, &size));
	OK(connect(fd, (void *)&name, sizeof(name)));
	close_fd(&other);
	ck_assert_int_eq(send(fd, &byte, 1, 0), 1);
	descriptor_clear_error(getpid(), (uint32_t)getpid(), (uint64_t)fd);
	ck_assert_int_eq(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
	ck_assert_int_eq(errno, flags == 0 ? EAGAIN : ECONNREFUSED);
	close_fd(&fd);
}

/* The socket lingers for an hour, with data that the peer does not read. */
TEST(descriptor_close_does_not_wait_for_so_linger)
{
	const struct linger linger = {.l_onoff = 1, .l_linger = 3600};
	struct sockaddr_in name = {.sin_family = AF_INET};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(name);
	struct sigaction before, after;
	static char bytes[1 << 16];

	name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	OK(bind(listener, (void *)&name, sizeof(name)));
	OK(listen(listener, 1));
	OK(getsockname(listener, (void *)&name, &size));
	OK(connect(fd, (void *)&name, sizeof(name)));
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	OK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	OK(sigaction(SIGALRM, NULL, &before));
	descriptor_close(fd);
	ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
	OK(sigaction(SIGALRM, NULL, &after));
	ck_assert(before.sa_handler == after.sa_handler);
	close_fd(&listener);
}

TEST(other_descriptors_have_no_kind)
{
	int fd = epoll_create1(EPOLL_CLOEXEC), was = fd;

	ck_assert_int_eq(kind(fd), DESCRIPTOR_OTHER);
	close_fd(&fd);
	ck_assert_int_eq(kind(was), DESCRIPTOR_OTHER);
	ck_assert(!is_socket(was));
	ck_assert_int_eq(descriptor_kind(0, 0), DESCRIPTOR_OTHER);
	ck_assert(!descriptor_is_socket(0, 0));
}
