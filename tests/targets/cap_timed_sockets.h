/* Waits for sockets that end by the timeouts of these. */
#ifndef TESTS_TARGETS_CAP_TIMED_SOCKETS_H
#define TESTS_TARGETS_CAP_TIMED_SOCKETS_H

#include <netinet/in.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "cap_waits.h"

static void limit(const struct wait *w, int option)
{
	const struct timespec t = span(w);
	const struct timeval timeout = {.tv_sec = t.tv_sec,
					.tv_usec = t.tv_nsec / 1000};

	need(setsockopt(w->fd, SOL_SOCKET, option, &timeout, sizeof(timeout)) ==
	     0);
}

static void make_timed_pair(struct wait *w)
{
	make_pair(w);
	limit(w, SO_RCVTIMEO);
	limit(w, SO_SNDTIMEO);
}

static void make_timed_full(struct wait *w)
{
	make_timed_pair(w);
	while (send(w->fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

static void make_timed_listener(struct wait *w)
{
	const struct sockaddr_in any = {.sin_family = AF_INET};

	w->fd = socket(AF_INET, SOCK_STREAM, 0);
	need(w->fd >= 0 && bind(w->fd, (const void *)&any, sizeof(any)) == 0 &&
	     listen(w->fd, 1) == 0);
	limit(w, SO_RCVTIMEO);
}

static bool timed_recv(struct wait *w)
{
	char byte;

	return timed_out(recv(w->fd, &byte, 1, 0));
}

/* All that comes until its time is over: never so much. */
static bool timed_recv_all(struct wait *w)
{
	ssize_t n = recv(w->fd, bytes, sizeof(bytes), MSG_WAITALL);

	return n > 0 ? n < (ssize_t)sizeof(bytes) : timed_out(n);
}

static bool timed_recvmsg(struct wait *w)
{
	char byte;
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	return timed_out(recvmsg(w->fd, &m, 0));
}

static bool timed_recvmmsg(struct wait *w)
{
	char byte;
	struct iovec iov = {&byte, 1};
	struct mmsghdr m = {.msg_hdr = {.msg_iov = &iov, .msg_iovlen = 1}};

	return timed_out(recvmmsg(w->fd, &m, 1, 0, NULL));
}

/* One waits for each as long as for the first. */
static bool timed_recvmmsg_all(struct wait *w)
{
	struct mmsghdr m[64] = {0};
	struct iovec iov = {bytes, 1};
	int n;

	for (int i = 0; i < 64; i++) {
		m[i].msg_hdr.msg_iov = &iov;
		m[i].msg_hdr.msg_iovlen = 1;
	}
	n = recvmmsg(w->fd, m, 64, 0, NULL);
	return n > 0 || timed_out(n);
}

static bool timed_read(struct wait *w)
{
	char byte;

	return timed_out(read(w->fd, &byte, 1));
}

static bool timed_readv(struct wait *w)
{
	char byte;
	const struct iovec iov = {&byte, 1};

	return timed_out(readv(w->fd, &iov, 1));
}

static bool timed_preadv2(struct wait *w)
{
	char byte;
	const struct iovec iov = {&byte, 1};

	return timed_out(preadv2(w->fd, &iov, 1, -1, 0));
}

static bool timed_send(struct wait *w)
{
	return timed_out(send(w->fd, bytes, sizeof(bytes), 0));
}

static bool timed_sendmsg(struct wait *w)
{
	struct iovec iov = {bytes, sizeof(bytes)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	return timed_out(sendmsg(w->fd, &m, 0));
}

static bool timed_sendmmsg(struct wait *w)
{
	struct iovec iov = {bytes, sizeof(bytes)};
	struct mmsghdr m = {.msg_hdr = {.msg_iov = &iov, .msg_iovlen = 1}};

	return timed_out(sendmmsg(w->fd, &m, 1, 0));
}

static bool timed_write(struct wait *w)
{
	return timed_out(write(w->fd, bytes, sizeof(bytes)));
}

static bool timed_writev(struct wait *w)
{
	const struct iovec iov = {bytes, sizeof(bytes)};

	return timed_out(writev(w->fd, &iov, 1));
}

static bool timed_pwritev2(struct wait *w)
{
	const struct iovec iov = {bytes, sizeof(bytes)};

	return timed_out(pwritev2(w->fd, &iov, 1, -1, 0));
}

static bool timed_accept(struct wait *w)
{
	return timed_out(accept(w->fd, NULL, NULL));
}

static void make_full_and_file(struct wait *w)
{
	make_timed_full(w);
	w->other = memfd_create("cap_waits", 0);
	need(w->other >= 0 && ftruncate(w->other, sizeof(bytes)) == 0);
}

static bool timed_sendfile(struct wait *w)
{
	off_t offset = 0;

	return timed_out(sendfile(w->fd, w->other, &offset, sizeof(bytes)));
}

static void make_pipe_and_full(struct wait *w)
{
	int pair[2];

	make_timed_full(w);
	need(pipe(pair) == 0 && write(pair[1], "x", 1) == 1);
	w->other = pair[0];
}

static bool timed_splice(struct wait *w)
{
	return timed_out(splice(w->other, NULL, w->fd, NULL, sizeof(bytes), 0));
}

static void make_pair_and_pipe(struct wait *w)
{
	int pair[2];

	make_timed_pair(w);
	need(pipe(pair) == 0);
	w->other = pair[1];
}

static bool timed_splice_in(struct wait *w)
{
	return timed_out(splice(w->fd, NULL, w->other, NULL, sizeof(bytes), 0));
}

/* A listener whose queue is full. */
static void make_busy(struct wait *w)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int n;

	snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1,
		 "cap_waits.%d.%p", getpid(), (void *)w);
	w->other = socket(AF_UNIX, SOCK_STREAM, 0);
	need(bind(w->other, (const void *)&name, sizeof(name)) == 0 &&
	     listen(w->other, 0) == 0);
	do {
		n = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	} while (connect(n, (const void *)&name, sizeof(name)) == 0);
	w->fd = socket(AF_UNIX, SOCK_STREAM, 0);
	limit(w, SO_SNDTIMEO);
}

static bool timed_connect(struct wait *w)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};

	snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1,
		 "cap_waits.%d.%p", getpid(), (void *)w);
	return timed_out(connect(w->fd, (const void *)&name, sizeof(name)));
}

/* The kernel drops what comes to a queue that is full. */
static void make_busy_tcp(struct wait *w)
{
	struct sockaddr_in name = {.sin_family = AF_INET};
	socklen_t size = sizeof(name);

	name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	w->other = socket(AF_INET, SOCK_STREAM, 0);
	need(bind(w->other, (const void *)&name, sizeof(name)) == 0 &&
	     listen(w->other, 0) == 0 &&
	     getsockname(w->other, (void *)&name, &size) == 0);
	w->fd = socket(AF_INET, SOCK_STREAM, 0);
	need(connect(w->fd, (const void *)&name, sizeof(name)) == 0);
}

static bool timed_connect_tcp(struct wait *w)
{
	struct wait copy = {.us = w->us};
	struct sockaddr_in name;
	socklen_t size = sizeof(name);
	int r, error;

	need(getpeername(w->fd, (void *)&name, &size) == 0);
	copy.fd = socket(AF_INET, SOCK_STREAM, 0);
	limit(&copy, SO_SNDTIMEO);
	r = connect(copy.fd, (const void *)&name, sizeof(name));
	error = errno;
	close(copy.fd);
	errno = error;
	return r < 0 && error == EINPROGRESS;
}

#endif
