#include "daemon/common/drain.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/ipc.h"

/* Messages: more than a socket's buffer holds. */
#define QUEUE_MAX 4096

/*
 * Returns 0 if the next message has no descriptors, or at the end; -EBADMSG if it has some; or
 * -errno.
 */
static int peek(int fd)
{
	char byte;
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n = ipc_recvmsg(fd, &m, MSG_PEEK | MSG_DONTWAIT);

	if (n < 0)
		return (int)n;
	/* The kernel had no room to deliver descriptors. */
	return m.msg_flags & MSG_CTRUNC ? -EBADMSG : 0;
}

ssize_t drain_recv(int fd, bool refuses_fds, void *bytes, size_t size)
{
	/* cppcheck-suppress ctuuninitvar ; takes the address only */
	struct iovec iov = {bytes, size};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	int r = refuses_fds ? 0 : peek(fd);

	return r < 0 ? r : ipc_recvmsg(fd, &m, MSG_DONTWAIT);
}

static bool has_descriptors(int fd)
{
	char byte;
	ssize_t n = 1;

	/* No more messages come; those in the queue stay. */
	(void)shutdown(fd, SHUT_RD);
	for (int i = 0; i < QUEUE_MAX && n > 0; i++)
		n = drain_recv(fd, false, &byte, sizeof(byte));
	return n == -EBADMSG;
}

/* Closes *fd while a child still has the last reference, and kills the child. */
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

void drain_close(int *fd, bool refuses_fds)
{
	if (!refuses_fds && *fd >= 0 && has_descriptors(*fd))
		leave_to_child(fd);
	close_fd(fd);
}
