#include "lib/base/ipc.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "tests/unit/suite.h"

static int ends[2];
static struct ipc_message m;

static void set_up(void)
{
	OK(ipc_pair(ends));
}

static void tear_down(void)
{
	close_fd(&ends[0]);
	close_fd(&ends[1]);
}

static void set_nonblocking(int fd)
{
	OK(fcntl(fd, F_SETFL, O_NONBLOCK));
}

/* Returns the number of open descriptors of this process. */
static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir) != NULL)
		n++;
	OK(closedir(dir));
	return n;
}

static int open_null(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

/* Sends a message as a hostile peer might, without the limits of ipc_send(). */
static void send_raw(int fd, size_t size, size_t n_fds)
{
	static uint8_t bytes[2 * IPC_SIZE_MAX];
	int null_fd = open_null();
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(64 * sizeof(int))];
	struct iovec iov = {.iov_base = bytes, .iov_len = size};
	struct msghdr raw = {.msg_iov = &iov, .msg_iovlen = 1};

	memset(control, 0, sizeof(control));
	if (n_fds > 0) {
		struct cmsghdr *c = (struct cmsghdr *)(void *)control;

		raw.msg_control = control;
		raw.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		for (size_t i = 0; i < n_fds; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &null_fd, sizeof(int));
	}
	ck_assert_int_eq(sendmsg(fd, &raw, 0), (ssize_t)size);
	(void)close(null_fd);
}

FIXTURE(set_up, tear_down)

TEST(both_ends_are_cloexec)
{
	ck_assert_int_eq(fcntl(ends[0], F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(fcntl(ends[1], F_GETFD), FD_CLOEXEC);
}

TEST(a_message_arrives_whole_and_alone)
{
	static uint8_t large[IPC_SIZE_MAX];

	memset(large, 0x5a, sizeof(large));
	OK(ipc_send(ends[0], "one", 3, NULL, 0));
	OK(ipc_send(ends[0], large, sizeof(large), NULL, 0));
	OK(ipc_send(ends[1], "back", 4, NULL, 0));
	ck_assert_int_eq(ipc_recv(ends[1], &m), 1);
	ck_assert_uint_eq(m.size, 3);
	ck_assert_mem_eq(m.bytes, "one", 3);
	ck_assert_uint_eq(m.n_fds, 0);
	ck_assert_int_eq(ipc_recv(ends[1], &m), 1);
	ck_assert_uint_eq(m.size, sizeof(large));
	ck_assert_mem_eq(m.bytes, large, sizeof(large));
	ck_assert_int_eq(ipc_recv(ends[0], &m), 1);
	ck_assert_uint_eq(m.size, 4);
}

TEST(descriptors_come_along_in_order)
{
	int before = count_fds(), fds[IPC_FDS_MAX];
	struct stat sent, got;

	for (size_t i = 0; i < IPC_FDS_MAX; i++)
		fds[i] = memfd_create("test", 0);
	OK(ipc_send(ends[0], "x", 1, fds, IPC_FDS_MAX));
	ck_assert_int_eq(ipc_recv(ends[1], &m), 1);
	ck_assert_uint_eq(m.n_fds, IPC_FDS_MAX);
	for (size_t i = 0; i < IPC_FDS_MAX; i++) {
		int fd = ipc_take_fd(&m, i);

		ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
		OK(fstat(fds[i], &sent));
		OK(fstat(fd, &got));
		ck_assert_uint_eq(sent.st_ino, got.st_ino);
		ck_assert_int_eq(ipc_take_fd(&m, i), -1);
		(void)close(fd);
		/* The sender's descriptor is still open. */
		OK(close(fds[i]));
	}
	ck_assert_int_eq(ipc_take_fd(&m, IPC_FDS_MAX), -1);
	ipc_close_fds(&m);
	ck_assert_int_eq(count_fds(), before);
}

TEST(descriptors_that_were_not_taken_are_closed)
{
	int before = count_fds(), fd;

	send_raw(ends[0], 10, 3);
	ck_assert_int_eq(ipc_recv(ends[1], &m), 1);
	ck_assert_uint_eq(m.n_fds, 3);
	fd = ipc_take_fd(&m, 1);
	ck_assert_int_eq(count_fds(), before + 3);
	ipc_close_fds(&m);
	ck_assert_int_eq(count_fds(), before + 1);
	ipc_close_fds(&m);
	OK(close(fd));
}

TEST(too_large_messages_are_not_sent)
{
	static uint8_t large[IPC_SIZE_MAX + 1];
	int fds[IPC_FDS_MAX + 1] = {0};

	set_nonblocking(ends[1]);
	ck_assert_int_eq(ipc_send(ends[0], large, 0, NULL, 0), -EINVAL);
	ck_assert_int_eq(ipc_send(ends[0], large, sizeof(large), NULL, 0), -EINVAL);
	ck_assert_int_eq(ipc_send(ends[0], large, 1, fds, array_size(fds)), -EINVAL);
	ck_assert_int_eq(ipc_recv(ends[1], &m), -EAGAIN);
}

/* An invalid message leaves no descriptor open. */
TEST(too_large_messages_are_not_received)
{
	int before = count_fds();

	send_raw(ends[0], IPC_SIZE_MAX + 1, 0);
	send_raw(ends[0], IPC_SIZE_MAX + 1, 2);
	send_raw(ends[0], 10, IPC_FDS_MAX + 1);
	send_raw(ends[0], 10, 60);
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(ipc_recv(ends[1], &m), -EPROTO);
		ck_assert_uint_eq(m.n_fds, 0);
		ck_assert_uint_eq(m.size, 0);
	}
	ck_assert_int_eq(count_fds(), before);
	/* The next message is received. */
	OK(ipc_send(ends[0], "x", 1, NULL, 0));
	ck_assert_int_eq(ipc_recv(ends[1], &m), 1);
}

/* _i: the number of descriptors for which there is room. */
TESTS(a_process_out_of_descriptors_receives_none, 3)
{
	const int before = count_fds();
	struct rlimit limit, full;
	int first = open_null();

	(void)close(first);
	send_raw(ends[0], 10, 3);
	OK(ipc_send(ends[0], "x", 1, NULL, 0));
	OK(getrlimit(RLIMIT_NOFILE, &limit));
	/* Numbers below the first free one are in use. */
	full = limit;
	full.rlim_cur = (rlim_t)(first + _i);
	OK(setrlimit(RLIMIT_NOFILE, &full));
	ck_assert_int_eq(ipc_recv(ends[1], &m), -EMFILE);
	ck_assert_uint_eq(m.n_fds, 0);
	ck_assert_int_eq(ipc_recv(ends[1], &m), 1);
	OK(setrlimit(RLIMIT_NOFILE, &limit));
	ck_assert_int_eq(count_fds(), before);
}

TEST(an_empty_message_counts_as_the_end)
{
	int before = count_fds();

	send_raw(ends[0], 0, 2);
	ck_assert_int_eq(ipc_recv(ends[1], &m), 0);
	ck_assert_uint_eq(m.n_fds, 0);
	ck_assert_int_eq(count_fds(), before);
}

TEST(a_peer_that_is_gone_is_an_end_and_not_a_signal)
{
	OK(ipc_send(ends[1], "last", 4, NULL, 0));
	close_fd(&ends[1]);
	ck_assert_int_eq(ipc_send(ends[0], "x", 1, NULL, 0), -EPIPE);
	ck_assert_int_eq(ipc_recv(ends[0], &m), 1);
	ck_assert_mem_eq(m.bytes, "last", 4);
	ck_assert_int_eq(ipc_recv(ends[0], &m), 0);
	ck_assert_int_eq(ipc_recv(ends[0], &m), 0);
}

/* The kernel returns ECONNRESET if the peer left a message unread. */
TEST(a_peer_that_goes_without_reading_is_an_end)
{
	OK(ipc_send(ends[0], "unread", 6, NULL, 0));
	close_fd(&ends[1]);
	ck_assert_int_eq(ipc_recv(ends[0], &m), 0);
	ck_assert_int_eq(ipc_send(ends[0], "x", 1, NULL, 0), -EPIPE);
}

/* It returns ECONNRESET before the messages that the peer had sent. */
TEST(the_last_messages_of_a_peer_that_goes_without_reading_are_received)
{
	OK(ipc_send(ends[0], "unread", 6, NULL, 0));
	OK(ipc_send(ends[1], "last", 4, NULL, 0));
	OK(ipc_send(ends[1], "very last", 9, NULL, 0));
	close_fd(&ends[1]);
	ck_assert_int_eq(ipc_recv(ends[0], &m), 1);
	ck_assert_mem_eq(m.bytes, "last", 4);
	ck_assert_int_eq(ipc_recv(ends[0], &m), 1);
	ck_assert_mem_eq(m.bytes, "very last", 9);
	ck_assert_int_eq(ipc_recv(ends[0], &m), 0);
	ck_assert_int_eq(ipc_send(ends[0], "x", 1, NULL, 0), -EPIPE);
}

TEST(a_nonblocking_end_never_waits)
{
	int n = 0, r;

	set_nonblocking(ends[0]);
	ck_assert_int_eq(ipc_recv(ends[0], &m), -EAGAIN);
	do
		r = ipc_send(ends[0], m.bytes, 1000, NULL, 0);
	while (r == 0 && ++n < 1000000);
	ck_assert_int_eq(r, -EAGAIN);
	ck_assert_int_gt(n, 0);
	ck_assert_int_eq(ipc_recv(ends[1], &m), 1);
	ck_assert_uint_eq(m.size, 1000);
}

TEST(an_error_of_the_system_is_passed_on)
{
	ck_assert_int_eq(ipc_send(-1, "x", 1, NULL, 0), -EBADF);
	ck_assert_int_eq(ipc_recv(-1, &m), -EBADF);
	ck_assert_int_eq(ipc_send(ends[0], "x", 1, (const int[]){-1}, 1), -EBADF);
}
