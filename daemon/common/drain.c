#include "daemon/common/drain.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/ipc.h"

/* Messages: more than a socket's buffer holds. */
#define QUEUE_MAX 4096

/* Room for the credentials of a message's sender, and for no descriptor behind them. */
union sender {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(struct ucred))];
};

/*
 * Looks at the next message. shows_senders: the socket has SO_PASSCRED. Returns 1 if the message
 * has no descriptors; 0 at the end, and for an empty message unless shows_senders; -EBADMSG if it
 * has descriptors; or -errno.
 */
static int peek(int fd, bool shows_senders)
{
	char byte;
	union sender sender;
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = shows_senders ? &sender : NULL,
			   .msg_controllen = shows_senders ? sizeof(sender) : 0};
	ssize_t n = ipc_recvmsg(fd, &m, MSG_PEEK | MSG_DONTWAIT);

	if (n < 0)
		return (int)n;
	/* The kernel had no room to deliver descriptors. */
	if (m.msg_flags & MSG_CTRUNC)
		return -EBADMSG;
	return n > 0 || m.msg_controllen > 0;
}

ssize_t drain_recv(int fd, bool refuses_fds, void *bytes, size_t size)
{
	/* cppcheck-suppress ctuuninitvar ; takes the address only */
	struct iovec iov = {bytes, size};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	int r = refuses_fds ? 0 : peek(fd, false);

	return r < 0 ? r : ipc_recvmsg(fd, &m, MSG_DONTWAIT);
}

static bool has_descriptors(int fd)
{
	const int on = 1;
	bool shows_senders;
	char byte;
	int r = 1;

	/* No more messages come; those in the queue stay. */
	(void)shutdown(fd, SHUT_RD);
	/* An empty message has a sender, and the end has none. */
	shows_senders = setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0;
	for (int i = 0; i < QUEUE_MAX && r > 0; i++) {
		r = peek(fd, shows_senders);
		if (r > 0 && drain_recv(fd, true, &byte, sizeof(byte)) < 0)
			break;
	}
	return r == -EBADMSG;
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
