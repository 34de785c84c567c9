/*
 * Sockets whose peer sends descriptors. Dropping the last reference to such a descriptor can
 * block, which must not happen to the broker.
 */
#include "daemon/common/drain.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "lib/base/ipc.h"
#include "tests/unit/daemon/lingering.h"
#include "tests/unit/suite.h"

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

/* An empty message reads as the end does. */
TEST(closing_does_not_wait_for_descriptors_behind_empty_messages)
{
	int listener, fd = lingering(&listener);

	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(send(pair[1], "", 0, 0), 0);
	OK(ipc_send(pair[1], "abc", 3, &fd, 1));
	close_fd(&fd);
	drain_close(&pair[0], false);
	reap(1);
	close_fd(&listener);
}

TEST(closing_forks_no_child_for_empty_messages)
{
	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(send(pair[1], "", 0, 0), 0);
	drain_close(&pair[0], false);
	reap(0);
}

/* The kernel reports first that the peer left a message unread, then what the peer had sent. */
TEST(a_peer_that_goes_without_reading_has_its_messages_read)
{
	const bool safe[] = {true, false};

	for (size_t i = 0; i < 2; i++) {
		OK(ipc_send(pair[0], "unread", 6, NULL, 0));
		OK(ipc_send(pair[1], "abc", 3, NULL, 0));
		close_fd(&pair[1]);
		ck_assert_int_eq(drain_recv(pair[0], safe[i], bytes, 16), 3);
		OK(drain_recv(pair[0], safe[i], bytes, 16));
		close_fd(&pair[0]);
		OK(ipc_pair(pair));
	}
}

TEST(closing_does_not_wait_for_descriptors_of_a_peer_that_goes_without_reading)
{
	int listener, fd = lingering(&listener);

	OK(ipc_send(pair[0], "unread", 6, NULL, 0));
	OK(ipc_send(pair[1], "abc", 3, &fd, 1));
	close_fd(&fd);
	close_fd(&pair[1]);
	drain_close(&pair[0], false);
	reap(1);
	close_fd(&listener);
}

/* The peer could send a descriptor after the last look at the queue. */
TEST(no_message_comes_while_a_socket_is_closed)
{
	int copy = fcntl(pair[0], F_DUPFD_CLOEXEC, 0);

	drain_close(&pair[0], false);
	ck_assert_int_eq(ipc_send(pair[1], "abc", 3, NULL, 0), -EPIPE);
	close_fd(&copy);
}
