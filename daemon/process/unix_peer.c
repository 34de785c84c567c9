#include "daemon/process/unix_peer.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <string.h>
#include <sys/socket.h>

int unix_peer_open(int *ret_fd)
{
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static int ask(int fd, uint32_t inode)
{
	const struct {
		struct nlmsghdr head;
		struct unix_diag_req body;
	} request = {
		.head =
			{
				.nlmsg_len = sizeof(request),
				.nlmsg_type = SOCK_DIAG_BY_FAMILY,
				.nlmsg_flags = NLM_F_REQUEST,
			},
		.body =
			{
				.sdiag_family = AF_UNIX,
				.udiag_states = UINT32_MAX,
				.udiag_ino = inode,
				.udiag_show = UDIAG_SHOW_PEER,
				/* Of all sockets with this inode: there is one. */
				.udiag_cookie = {UINT32_MAX, UINT32_MAX},
			},
	};

	return send(fd, &request, sizeof(request), MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Finds the attribute UNIX_DIAG_PEER; 0: there is none. */
static uint32_t peer_in(const uint8_t *attributes, size_t n)
{
	while (n >= RTA_LENGTH(0)) {
		struct rtattr head;
		uint32_t peer;
		size_t step;

		memcpy(&head, attributes, sizeof(head));
		if (head.rta_len < RTA_LENGTH(0) || head.rta_len > n)
			return 0;
		if (head.rta_type == UNIX_DIAG_PEER && head.rta_len >= RTA_LENGTH(sizeof(peer))) {
			memcpy(&peer, attributes + RTA_LENGTH(0), sizeof(peer));
			return peer;
		}
		step = min_size(RTA_ALIGN(head.rta_len), n);
		attributes += step;
		n -= step;
	}
	return 0;
}

int unix_peer_find(int fd, uint32_t inode, uint32_t *ret_peer)
{
	enum { HEADS = NLMSG_SPACE(sizeof(struct unix_diag_msg)) };
	uint8_t answer[1024];
	struct nlmsghdr head;
	struct nlmsgerr error;
	ssize_t n;
	int r = ask(fd, inode);

	if (r < 0)
		return r;
	/* The kernel has answered before send(2) has returned. */
	n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	if ((size_t)n < sizeof(head))
		return -EPROTO;
	memcpy(&head, answer, sizeof(head));
	if (head.nlmsg_type == NLMSG_ERROR && (size_t)n >= NLMSG_LENGTH(sizeof(error))) {
		memcpy(&error, answer + NLMSG_HDRLEN, sizeof(error));
		return error.error < 0 ? error.error : -EPROTO;
	}
	if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY || n < HEADS || head.nlmsg_len > (size_t)n)
		return -EPROTO;
	*ret_peer = peer_in(answer + HEADS, head.nlmsg_len - min_size(HEADS, head.nlmsg_len));
	return 0;
}
