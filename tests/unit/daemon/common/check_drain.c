/*
 * Sockets whose peer sends descriptors. Dropping the last reference to such a descriptor can
 * block, which must not happen to the broker.
 */
#include "daemon/common/drain.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "lib/base/ipc.h"
#include "tests/unit/suite.h"

/* Longer than the timeout of the test, so a close(2) that lingers fails the test. */
#define LINGER_S 3600

static int pair[2];
static char bytes[16];

static void set_up(void)
{
	OK(ipc_pair(pair));
}

static void tear_down(void)
{
	close_fd(&pair[0]);
	close_fd(&pair[1]);
}

/* Returns a full TCP connection whose peer never reads, so that its last close(2) lingers. */
static int lingering(int *ret_listener)
{
	const struct linger linger = {.l_onoff = 1, .l_linger = LINGER_S};
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t size = sizeof(address);
	static const char much[65536];
	int fd;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*ret_listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	OK(bind(*ret_listener, (struct sockaddr *)&address, size));
	OK(listen(*ret_listener, 1));
	OK(getsockname(*ret_listener, (struct sockaddr *)&address, &size));
	OK(connect(fd, (struct sockaddr *)&address, size));
	OK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	while (send(fd, much, sizeof(much), MSG_DONTWAIT) > 0)
		continue;
	return fd;
}

static void reap(int expected)
{
	int n = 0;

	while (waitpid(-1, NULL, 0) > 0)
		n++;
	ck_assert_int_eq(n, expected);
}

FIXTURE(set_up, tear_down)

TEST(messages_without_descriptors_are_read)
{
	const bool safe[] = {true, false};

	for (size_t i = 0; i < 2; i++) {
		ck_assert_int_eq(drain_recv(pair[0], safe[i], bytes, 16), -EAGAIN);
		OK(ipc_send(pair[1], "abc", 3, NULL, 0));
		ck_assert_int_eq(drain_recv(pair[0], safe[i], bytes, 16), 3);
		ck_assert_mem_eq(bytes, "abc", 3);
	}
	close_fd(&pair[1]);
	OK(drain_recv(pair[0], false, bytes, 16));
	drain_close(&pair[0], false);
	ck_assert_int_eq(pair[0], -1);
	reap(0);
}

TEST(a_message_with_a_descriptor_is_refused_without_waiting)
{
	int listener, fd = lingering(&listener);

	OK(ipc_send(pair[1], "abc", 3, &fd, 1));
	close_fd(&fd);
	ck_assert_int_eq(drain_recv(pair[0], false, bytes, 16), -EBADMSG);
	ck_assert_int_eq(drain_recv(pair[0], false, bytes, 16), -EBADMSG);
	drain_close(&pair[0], false);
	ck_assert_int_eq(pair[0], -1);
	reap(1);
	ck_assert_int_eq(ipc_send(pair[1], "abc", 3, NULL, 0), -EPIPE);
	close_fd(&listener);
}

/* The descriptor comes after messages that were not read. */
TEST(closing_does_not_wait_for_descriptors_in_the_queue)
{
	int listener, fd = lingering(&listener);

	for (int i = 0; i < 20; i++)
		OK(ipc_send(pair[1], "abc", 3, NULL, 0));
	OK(ipc_send(pair[1], "abc", 3, &fd, 1));
	close_fd(&fd);
	drain_close(&pair[0], false);
	reap(1);
	close_fd(&listener);
}
