/* Calls that receive, and reads of what is never empty. */
#ifndef TESTS_TARGETS_CAP_WHOLE_RECEIVED_H
#define TESTS_TARGETS_CAP_WHOLE_RECEIVED_H

#include <sys/random.h>

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

/* These take long for each byte. */
#define RANDOM_BYTES (256u << 10)

static ssize_t call_getrandom(struct work *w)
{
	ssize_t n = getrandom(w->bytes, RANDOM_BYTES, 0);

	return n < 0 ? n : RANDOM_BYTES - n;
}

static void make_urandom(struct work *w)
{
	w->fd = open("/dev/urandom", O_RDONLY);
	need(w->fd >= 0);
}

static ssize_t call_read_random(struct work *w)
{
	ssize_t n = read(w->fd, w->bytes, RANDOM_BYTES);

	return n < 0 ? n : RANDOM_BYTES - n;
}

static void make_devices(struct work *w)
{
	w->fd = open("/dev/zero", O_RDONLY);
	w->peer = open("/dev/full", O_RDONLY);
	w->file = open("/dev/urandom", O_RDWR);
	need(w->fd >= 0 && w->peer >= 0 && w->file >= 0);
}

/* Each of them in its turn. */
static ssize_t call_read_devices(struct work *w)
{
	struct iovec iov[PIECES];
	ssize_t n;

	cut(w->bytes, RANDOM_BYTES, iov);
	switch (w->calls++ % 5) {
	case 0:
		n = readv(w->fd, iov, PIECES);
		break;
	case 1:
		n = pread(w->fd, w->bytes, RANDOM_BYTES, 1);
		break;
	case 2:
		n = preadv(w->peer, iov, PIECES, 0);
		break;
	case 3:
		n = preadv2(w->file, iov, PIECES, -1, 0);
		break;
	default:
		n = read(w->peer, w->bytes, RANDOM_BYTES);
	}
	return n < 0 ? n : RANDOM_BYTES - n;
}

static ssize_t call_write_urandom(struct work *w)
{
	struct iovec iov[PIECES];
	ssize_t n;

	cut(w->bytes, RANDOM_BYTES, iov);
	if (w->calls++ % 2 == 0)
		n = write(w->file, w->bytes, RANDOM_BYTES);
	else
		n = writev(w->file, iov, PIECES);
	return n < 0 ? n : RANDOM_BYTES - n;
}

static void make_zero(struct work *w)
{
	w->fd = open("/dev/zero", O_RDONLY);
	need(w->fd >= 0);
}

static ssize_t call_read(struct work *w)
{
	ssize_t n = read(w->fd, w->bytes, WHOLE);

	return n < 0 ? n : WHOLE - n;
}

#endif
