/* Waits for sockets that end by the timeouts of these. */
#ifndef TESTS_TARGETS_CAP_TIMED_SOCKETS_H
#define TESTS_TARGETS_CAP_TIMED_SOCKETS_H

#include <sys/mman.h>

#include "cap_waits.h"

static void limit(int fd, const struct wait *w, int option)
{
	const struct timespec t = span(w);
	const struct timeval timeout = {.tv_sec = t.tv_sec,
					.tv_usec = t.tv_nsec / 1000};

	need(setsockopt(fd, SOL_SOCKET, option, &timeout, sizeof(timeout)) ==
	     0);
}

static void make_timed_pair(struct wait *w)
{
	make_pair(w);
	limit(w->fd, w, SO_RCVTIMEO);
	limit(w->fd, w, SO_SNDTIMEO);
}

static void make_timed_full(struct wait *w)
{
	make_timed_pair(w);
	while (send(w->fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

static void make_timed_listener(struct wait *w)
{
	w->fd = listen_tcp(1);
	limit(w->fd, w, SO_RCVTIMEO);
}

/* All that comes until its time is over: never so much. */
static bool timed_recv_all(struct wait *w)
{
	ssize_t n = recv(w->fd, bytes, sizeof(bytes), MSG_WAITALL);

	return n > 0 ? n < (ssize_t)sizeof(bytes) : timed_out(n);
}

/* One waits for each as long as for the first. */
static bool timed_recvmmsg_all(struct wait *w)
{
	struct mmsghdr m[64];
	int n;

	for (int i = 0; i < 64; i++)
		m[i] = w->byte_message;
	n = recvmmsg(w->fd, m, 64, 0, NULL);
	return n > 0 || timed_out(n);
}

static void make_full_and_file(struct wait *w)
{
	make_timed_full(w);
	w->other = memfd_create("cap_waits", 0);
	need(w->other >= 0 && ftruncate(w->other, sizeof(bytes)) == 0);
}

static void make_pipe_and_full(struct wait *w)
{
	make_timed_full(w);
	open_pipe(&w->other, &w->third);
	need(write(w->third, "x", 1) == 1);
}

static void make_pair_and_pipe(struct wait *w)
{
	make_timed_pair(w);
	open_pipe(&w->third, &w->other);
}

/* A listener whose queue is full. */
static void make_busy(struct wait *w)
{
	int n;

	w->name.sun_family = AF_UNIX;
	snprintf(w->name.sun_path + 1, sizeof(w->name.sun_path) - 1,
		 "cap_waits.%d.%p", getpid(), (void *)w);
	w->other = socket(AF_UNIX, SOCK_STREAM, 0);
	need(bind(w->other, (const void *)&w->name, sizeof(w->name)) == 0 &&
	     listen(w->other, 0) == 0);
	do {
		n = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	} while (connect(n, (const void *)&w->name, sizeof(w->name)) == 0);
	w->fd = socket(AF_UNIX, SOCK_STREAM, 0);
	limit(w->fd, w, SO_SNDTIMEO);
}

/* The kernel drops what comes to a queue that is full. */
static void make_busy_tcp(struct wait *w)
{
	w->other = listen_tcp(0);
	w->fd = open_tcp();
	need(connect_tcp(w->fd, w->other) == 0);
}

static bool timed_connect_tcp(struct wait *w)
{
	const int fd = open_tcp();
	int r, error;

	limit(fd, w, SO_SNDTIMEO);
	r = connect_tcp(fd, w->other);
	error = errno;
	close(fd);
	errno = error;
	return r < 0 && error == EINPROGRESS;
}

#endif
