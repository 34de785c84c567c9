/* Calls that send, and those that move from file to file. */
#ifndef TESTS_TARGETS_CAP_WHOLE_SENT_H
#define TESTS_TARGETS_CAP_WHOLE_SENT_H

#include <linux/errqueue.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

#include "cap_whole.h"

static void make_pipe(struct work *w)
{
	open_pipe(&w->peer, &w->fd);
}

static void make_unix(struct work *w)
{
	open_pair(SOCK_STREAM, &w->fd, &w->peer);
}

static void connect_work(struct work *w)
{
	const int listener = listen_tcp(1);

	need(connect_tcp(w->fd, listener) == 0);
	w->peer = accept(listener, NULL, NULL);
	need(w->peer >= 0);
	close(listener);
}

static void make_tcp(struct work *w)
{
	w->fd = open_tcp();
	connect_work(w);
}

/*
 * Who asks for all of TTY_BYTES has to wait for it, however fast the other
 * side is. With less room, or with the loopback's segments of 64 KiB, TCP
 * waits for its timers.
 */
static void make_narrow_tcp(struct work *w)
{
	const int size = TTY_BYTES / 2, segment = 1400;

	w->fd = open_tcp();
	need(setsockopt(w->fd, IPPROTO_TCP, TCP_MAXSEG, &segment,
			sizeof(segment)) == 0);
	connect_work(w);
	need(setsockopt(w->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)) ==
	     0);
}

static void make_tty(struct work *w)
{
	open_terminal(&w->fd, &w->peer);
}

static ssize_t call_write(struct work *w)
{
	return sent(w, write(w->fd, next_bytes(w), WHOLE), WHOLE);
}

static ssize_t call_write_tty(struct work *w)
{
	return sent(w, write(w->fd, next_bytes(w), TTY_BYTES), TTY_BYTES);
}

/* Pieces of several sizes, one of them empty. */
static void cut(uint8_t *from, size_t n, struct iovec iov[PIECES])
{
	size_t at = 0;

	for (unsigned int i = 0; i < PIECES; i++) {
		size_t size = i == 2 ? 0 : n / (2 * PIECES) + i * (n / 64);

		if (i == PIECES - 1)
			size = n - at;
		iov[i] = (struct iovec){from + at, size};
		at += size;
	}
}

static ssize_t call_writev(struct work *w)
{
	struct iovec iov[PIECES];

	cut(next_bytes(w), WHOLE, iov);
	return sent(w, writev(w->fd, iov, PIECES), WHOLE);
}

static ssize_t call_send(struct work *w)
{
	return sent(w, send(w->fd, next_bytes(w), WHOLE, 0), WHOLE);
}

/* With a flag that says nothing to such a socket. */
static ssize_t call_send_flag(struct work *w)
{
	const int flags = w->calls++ % 2 == 0 ? MSG_DONTROUTE : 0;

	return sent(w, send(w->fd, next_bytes(w), WHOLE, flags), WHOLE);
}

static ssize_t call_pwritev2(struct work *w)
{
	struct iovec iov[PIECES];

	cut(next_bytes(w), WHOLE, iov);
	return sent(w, pwritev2(w->fd, iov, PIECES, -1, 0), WHOLE);
}

static void make_zerocopy(struct work *w)
{
	const int on = 1;

	make_tcp(w);
	need(setsockopt(w->fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof(on)) == 0);
}

/* The kernel counts the calls, and says of which the bytes are free again. */
static void take_notices(struct work *w)
{
	char control[128];
	struct msghdr m = {.msg_control = control,
			   .msg_controllen = sizeof(control)};
	struct sock_extended_err e;

	while (recvmsg(w->fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0) {
		memcpy(&e, CMSG_DATA((struct cmsghdr *)control), sizeof(e));
		if (e.ee_data >= w->calls)
			atomic_fetch_add(&w->wrong, 1);
		m.msg_controllen = sizeof(control);
	}
}

/* Where too much is on its way, there is room later. */
static ssize_t call_send_zerocopy(struct work *w)
{
	ssize_t n;

	do {
		take_notices(w);
		n = send(w->fd, next_bytes(w), WHOLE, MSG_ZEROCOPY);
	} while (n < 0 && errno == ENOBUFS);
	w->calls++;
	return sent(w, n, WHOLE);
}

static ssize_t call_sendmsg(struct work *w)
{
	struct iovec iov[PIECES];
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = PIECES};

	cut(next_bytes(w), WHOLE, iov);
	return sent(w, sendmsg(w->fd, &m, MSG_NOSIGNAL), WHOLE);
}

static void make_tcp_and_file(struct work *w)
{
	make_tcp(w);
	w->file = memfd_create("cap_whole", 0);
	need(w->file >= 0 &&
	     write(w->file, w->bytes, WHOLE + PATTERN) == WHOLE + PATTERN);
}

static ssize_t call_sendfile(struct work *w)
{
	off_t at = (off_t)(w->sent % PATTERN);

	return sent(w, sendfile(w->fd, w->file, &at, WHOLE), WHOLE);
}

/* What it takes out of the pipe is what it says. */
static void make_splice(struct work *w)
{
	make_unix(w);
	open_pipe(&w->file, &w->splice_to);
}

static ssize_t call_splice(struct work *w)
{
	size_t left = 40000;
	ssize_t n = write(w->splice_to, next_bytes(w), left);

	need(n == (ssize_t)left);
	w->sent += left;
	n = splice(w->file, NULL, w->fd, NULL, left, 0);
	if (n < 0)
		return -1;
	for (size_t more = left - (size_t)n; more > 0;) {
		ssize_t r = splice(w->file, NULL, w->fd, NULL, more, 0);

		need(r > 0 || errno == EINTR);
		more -= r > 0 ? (size_t)r : 0;
	}
	return (ssize_t)left - n;
}

#endif
