/* Calls that receive. */
#ifndef TESTS_TARGETS_CAP_WHOLE_RECEIVED_H
#define TESTS_TARGETS_CAP_WHOLE_RECEIVED_H

#include "cap_whole_sent.h"

/* The other way round: the thread receives, the other one sends in bits. */
static void send_bit(struct work *w)
{
	ssize_t n = write(w->peer, next_bytes(w), 1 + w->sent % 3000);

	/* SIGSTOP cuts it short. */
	need(n > 0 || errno == EINTR);
	w->sent += n < 0 ? 0 : (uint64_t)n;
}

static ssize_t received(struct work *w, const uint8_t *got, ssize_t n)
{
	if (n < 0)
		return -1;
	compare(w, got, w->seen, (size_t)n);
	w->seen += (uint64_t)n;
	return (ssize_t)TTY_BYTES - n;
}

static ssize_t call_recv(struct work *w)
{
	uint8_t got[TTY_BYTES];

	return received(w, got, recv(w->fd, got, sizeof(got), MSG_WAITALL));
}

static ssize_t call_recvmsg(struct work *w)
{
	uint8_t got[TTY_BYTES];
	struct iovec iov[PIECES];
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = PIECES};

	cut(got, sizeof(got), iov);
	return received(w, got, recvmsg(w->fd, &m, MSG_WAITALL));
}

static void make_datagrams(struct work *w)
{
	open_pair(SOCK_DGRAM, &w->fd, &w->peer);
}

static void send_number(struct work *w)
{
	need(send(w->peer, &w->sent, sizeof(w->sent), 0) == sizeof(w->sent));
	w->sent++;
}

static ssize_t call_recvmmsg(struct work *w)
{
	struct mmsghdr m[MESSAGES];
	struct iovec iov[MESSAGES];
	uint64_t got[MESSAGES];
	int n;

	memset(m, 0, sizeof(m));
	for (int i = 0; i < MESSAGES; i++) {
		iov[i] = (struct iovec){&got[i], sizeof(got[i])};
		m[i].msg_hdr.msg_iov = &iov[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	n = recvmmsg(w->fd, m, MESSAGES, 0, NULL);
	for (int i = 0; i < n; i++)
		if (got[i] != w->seen++ || m[i].msg_len != sizeof(got[i]))
			atomic_fetch_add(&w->wrong, 1);
	return n < 0 ? n : MESSAGES - n;
}

#endif
