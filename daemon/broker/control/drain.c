#include "daemon/broker/control/drain.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

/* More than a socket's buffer holds. */
#define QUEUE_MAX 4096

/* 0: there is a message without descriptors, or the end. */
static int look(int fd)
{
	char byte;
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (recvmsg(fd, &m, MSG_PEEK | MSG_DONTWAIT) < 0)
		return -errno;
	/* There was no room for what goes with it. */
	return m.msg_flags & MSG_CTRUNC ? -EBADMSG : 0;
}

ssize_t drain_recv(int fd, bool is_safe, void *bytes, size_t size)
{
	int r = is_safe ? 0 : look(fd);
	ssize_t n;

	if (r < 0)
		return r;
	n = recv(fd, bytes, size, MSG_DONTWAIT);
	return n < 0 ? -errno : n;
}

static bool has_descriptors(int fd)
{
	char byte;
	ssize_t n = 1;

	/* Nothing comes any more, what is there stays. */
	(void)shutdown(fd, SHUT_RD);
	for (int i = 0; i < QUEUE_MAX && n > 0; i++)
		n = drain_recv(fd, false, &byte, sizeof(byte));
	return n == -EBADMSG;
}

/* The child has the last reference then. */
static void leave_to_child(int *fd)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			(void)pause();
	close_fd(fd);
	if (pid > 0)
		(void)kill(pid, SIGKILL);
}

void drain_close(int *fd, bool is_safe)
{
	if (!is_safe && *fd >= 0 && has_descriptors(*fd))
		leave_to_child(fd);
	close_fd(fd);
}
