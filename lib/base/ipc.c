#include "lib/base/ipc.h"

#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(IPC_FDS_MAX * sizeof(int))];
};

int ipc_pair(int ret_fds[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_fds) < 0)
		return -errno;
	return 0;
}

int ipc_send(int fd, const void *bytes, size_t size, const int *fds, size_t n_fds)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	union control control;
	ssize_t n;

	if (size == 0 || size > IPC_SIZE_MAX || n_fds > IPC_FDS_MAX)
		return -EINVAL;
	if (n_fds > 0) {
		memset(&control, 0, sizeof(control));
		m.msg_control = control.bytes;
		m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, n_fds * sizeof(int));
	}
	do
		n = sendmsg(fd, &m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : errno == ECONNRESET ? -EPIPE : -errno;
	return 0;
}

ssize_t ipc_recvmsg(int fd, struct msghdr *m, int flags)
{
	bool was_reset = false;
	ssize_t n;

	do {
		n = recvmsg(fd, m, flags);
		if (n >= 0)
			return n;
		/* The kernel reports it once, before the messages that the peer had sent. */
		if (errno == ECONNRESET && !was_reset)
			was_reset = true;
		else if (errno != EINTR)
			return errno == EWOULDBLOCK ? -EAGAIN : errno == ECONNRESET ? 0 : -errno;
	} while (true);
}

int ipc_recv(int fd, struct ipc_message *ret)
{
	/* cppcheck-suppress ctuuninitvar ; takes the address only */
	struct iovec iov = {.iov_base = ret->bytes, .iov_len = sizeof(ret->bytes)};
	union control control;
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	ssize_t n;

	ret->size = 0;
	ret->n_fds = 0;
	for (size_t i = 0; i < IPC_FDS_MAX; i++)
		ret->fds[i] = -1;
	n = ipc_recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return (int)n;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c != NULL; c = CMSG_NXTHDR(&m, c)) {
		size_t bytes;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		/* The control buffer has room for no more than IPC_FDS_MAX. */
		bytes = c->cmsg_len - CMSG_LEN(0);
		memcpy(ret->fds, CMSG_DATA(c), bytes);
		ret->n_fds = bytes / sizeof(int);
	}
	if (n == 0) {
		ipc_close_fds(ret);
		return 0;
	}
	if (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		/* The kernel drops descriptors for which the process has no room, too. */
		const bool no_room = !(m.msg_flags & MSG_TRUNC) && ret->n_fds < IPC_FDS_MAX;

		ipc_close_fds(ret);
		return no_room ? -EMFILE : -EPROTO;
	}
	ret->size = (size_t)n;
	return 1;
}

int ipc_take_fd(struct ipc_message *m, size_t index)
{
	int fd;

	if (index >= m->n_fds)
		return -1;
	fd = m->fds[index];
	m->fds[index] = -1;
	return fd;
}

void ipc_close_fds(struct ipc_message *m)
{
	for (size_t i = 0; i < m->n_fds; i++)
		close_fd(&m->fds[i]);
	m->n_fds = 0;
}
