/* Waits that end because another thread does something. */
#ifndef TESTS_TARGETS_CAP_WOKEN_H
#define TESTS_TARGETS_CAP_WOKEN_H

#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "cap_woken_events.h"
#include "cap_woken_locks.h"

static bool woken_read(struct wait *w)
{
	char byte;

	return read(w->fd, &byte, 1) == 1;
}

static bool woken_poll(struct wait *w)
{
	struct pollfd p = {.fd = w->fd, .events = POLLIN};

	return poll(&p, 1, -1) == 1 && woken_read(w);
}

static bool woken_select(struct wait *w)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(w->fd, &set);
	return select(w->fd + 1, &set, NULL, NULL, NULL) == 1 && woken_read(w);
}

/* The pair's end itself is watched; other is the epoll's. */
static void make_watched(struct wait *w)
{
	struct epoll_event event = {.events = EPOLLIN};

	make_pair(w);
	w->third = epoll_create1(0);
	event.data.fd = w->fd;
	need(w->third >= 0 &&
	     epoll_ctl(w->third, EPOLL_CTL_ADD, w->fd, &event) == 0);
}

static bool wait_in_epoll(struct wait *w, int ms)
{
	struct epoll_event event;

	return epoll_wait(w->third, &event, 1, ms) == 1 && woken_read(w);
}

static bool woken_epoll(struct wait *w)
{
	return wait_in_epoll(w, -1);
}

/* It has a timeout, which is never reached. */
static bool woken_epoll_timed(struct wait *w)
{
	return wait_in_epoll(w, LONG_WAIT_S * 1000);
}

static void make_full_pipe(struct wait *w)
{
	make_pipe(w);
	fcntl(w->other, F_SETFL, O_NONBLOCK);
	while (write(w->other, bytes, 4096) > 0)
		;
	fcntl(w->other, F_SETFL, 0);
}

static void read_page(struct wait *w)
{
	char page[4096];

	(void)!read(w->fd, page, sizeof(page));
}

static void make_pty(struct wait *w)
{
	open_terminal(&w->fd, &w->other);
}

/* Of a socket of the Internet, so that both ends do some work. */
static void make_listener(struct wait *w)
{
	w->fd = listen_tcp(64);
}

static bool closed(int fd)
{
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static int connect_to(int listener)
{
	const struct linger reset = {.l_onoff = 1};
	const int fd = open_tcp();
	int error;

	if (connect_tcp(fd, listener) < 0) {
		error = errno;
		close(fd);
		errno = error;
		return -1;
	}
	/* No port is left waiting. */
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	return fd;
}

static void wake_accept(struct wait *w)
{
	(void)closed(connect_to(w->fd));
}

/* One may have been reset before it was accepted. */
static bool woken_accept(struct wait *w)
{
	return closed(accept(w->fd, NULL, NULL)) || errno == ECONNABORTED;
}

static bool woken_connect(struct wait *w)
{
	return closed(connect_to(w->fd));
}

static void wake_connect(struct wait *w)
{
	(void)closed(accept4(w->fd, NULL, NULL, SOCK_NONBLOCK));
}

/* The child that is waited for; one that was waited for in vain stays. */
static pid_t child_of(struct wait *w)
{
	if (w->other > 0)
		return w->other;
	w->other = fork();
	if (w->other == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		nanosleep(&w->span, NULL);
		_exit(0);
	}
	return w->other;
}

static bool child_ended(struct wait *w, bool ended)
{
	if (ended)
		w->other = -1;
	return ended;
}

static bool woken_wait4(struct wait *w)
{
	return child_ended(w, waitpid(child_of(w), NULL, 0) > 0);
}

static bool woken_waitid(struct wait *w)
{
	siginfo_t info;

	return child_ended(w, waitid(P_PID, (id_t)child_of(w), &info,
				     WEXITED) == 0);
}

static void make_splice(struct wait *w)
{
	make_pipe(w);
	w->third = open("/dev/null", O_WRONLY);
	need(w->third >= 0);
}

static void make_tee(struct wait *w)
{
	make_pipe(w);
	open_pipe(&w->fourth, &w->third);
}

static bool woken_tee(struct wait *w)
{
	char byte;

	return tee(w->fd, w->third, 1, 0) == 1 && read(w->fd, &byte, 1) == 1 &&
	       read(w->fourth, &byte, 1) == 1;
}

static void make_fifo(struct wait *w)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/cap_waits.%d.%p", getpid(),
		 (void *)w);
	need(mkfifo(path, 0600) == 0);
	w->other = open(path, O_PATH);
	need(w->other >= 0 && unlink(path) == 0);
}

static int open_fifo(struct wait *w, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", w->other);
	return open(path, flags);
}

static bool woken_open(struct wait *w)
{
	return closed(open_fifo(w, O_RDONLY));
}

static void wake_open(struct wait *w)
{
	(void)closed(open_fifo(w, O_WRONLY | O_NONBLOCK));
}

#endif
