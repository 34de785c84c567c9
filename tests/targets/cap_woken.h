/* Waits that end because another thread does something. */
#ifndef TESTS_TARGETS_CAP_WOKEN_H
#define TESTS_TARGETS_CAP_WOKEN_H

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>

#include "cap_woken_events.h"
#include "cap_woken_locks.h"

static bool woken_read(struct wait *w)
{
	char byte;

	return read(w->fd, &byte, 1) == 1;
}

static bool woken_readv(struct wait *w)
{
	char byte;
	const struct iovec iov = {&byte, 1};

	return readv(w->fd, &iov, 1) == 1;
}

static bool woken_recv(struct wait *w)
{
	char byte;

	return recv(w->fd, &byte, 1, 0) == 1;
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
	w->word = epoll_create1(0);
	event.data.fd = w->fd;
	need(w->word >= 0 &&
	     epoll_ctl(w->word, EPOLL_CTL_ADD, w->fd, &event) == 0);
}

static bool woken_epoll(struct wait *w)
{
	struct epoll_event event;

	return epoll_wait(w->word, &event, 1, -1) == 1 && woken_read(w);
}

/* It has a timeout, which is never reached. */
static bool woken_epoll_timed(struct wait *w)
{
	struct epoll_event event;

	return epoll_wait(w->word, &event, 1, LONG_WAIT_S * 1000) == 1 &&
	       woken_read(w);
}

static void make_full_pipe(struct wait *w)
{
	make_pipe(w);
	fcntl(w->other, F_SETFL, O_NONBLOCK);
	while (write(w->other, bytes, 4096) > 0)
		;
	fcntl(w->other, F_SETFL, 0);
}

static bool woken_write(struct wait *w)
{
	return write(w->other, bytes, 4096) == 4096;
}

static void read_page(struct wait *w)
{
	char page[4096];

	(void)!read(w->fd, page, sizeof(page));
}

static void make_pty(struct wait *w)
{
	struct termios t;

	w->other = posix_openpt(O_RDWR | O_NOCTTY);
	need(w->other >= 0 && grantpt(w->other) == 0 &&
	     unlockpt(w->other) == 0);
	w->fd = open(ptsname(w->other), O_RDWR | O_NOCTTY);
	need(w->fd >= 0 && tcgetattr(w->fd, &t) == 0);
	cfmakeraw(&t);
	need(tcsetattr(w->fd, TCSANOW, &t) == 0);
}

/* Of a socket of the Internet, so that both ends do some work. */
static void make_listener(struct wait *w)
{
	const struct sockaddr_in any = {.sin_family = AF_INET};

	w->fd = socket(AF_INET, SOCK_STREAM, 0);
	need(w->fd >= 0 && bind(w->fd, (const void *)&any, sizeof(any)) == 0 &&
	     listen(w->fd, 64) == 0);
}

static int connect_to(int listener)
{
	const struct linger reset = {.l_onoff = 1};
	struct sockaddr_in name;
	socklen_t size = sizeof(name);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	need(fd >= 0 && getsockname(listener, (void *)&name, &size) == 0);
	if (connect(fd, (const void *)&name, sizeof(name)) < 0) {
		size = (socklen_t)errno;
		close(fd);
		errno = (int)size;
		return -1;
	}
	/* No port is left waiting. */
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	return fd;
}

static void wake_accept(struct wait *w)
{
	int fd = connect_to(w->fd);

	if (fd >= 0)
		close(fd);
}

static bool woken_accept(struct wait *w)
{
	int fd = accept(w->fd, NULL, NULL);

	/* Reset before it was accepted. */
	if (fd < 0 && errno == ECONNABORTED)
		return true;
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool woken_connect(struct wait *w)
{
	int fd = connect_to(w->fd);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void wake_connect(struct wait *w)
{
	int fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK);

	if (fd >= 0)
		close(fd);
}

static pid_t make_child(const struct wait *w)
{
	const struct timespec t = span(w);
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		nanosleep(&t, NULL);
		_exit(0);
	}
	return child;
}

static bool woken_wait4(struct wait *w)
{
	pid_t child = make_child(w);

	return child > 0 && waitpid(child, NULL, 0) == child;
}

static bool woken_waitid(struct wait *w)
{
	pid_t child = make_child(w);
	siginfo_t info;

	return child > 0 && waitid(P_PID, (id_t)child, &info, WEXITED) == 0;
}

static bool woken_splice(struct wait *w)
{
	return splice(w->fd, NULL, w->word, NULL, 1, 0) == 1;
}

static void make_splice(struct wait *w)
{
	make_pipe(w);
	w->word = open("/dev/null", O_WRONLY);
	need(w->word >= 0);
}

static void make_tee(struct wait *w)
{
	int pair[2];

	make_pipe(w);
	need(pipe(pair) == 0);
	/* Its reader is never asked: what goes in is thrown away with it. */
	w->word = pair[1];
	w->aio = (aio_context_t)pair[0];
}

static bool woken_tee(struct wait *w)
{
	char byte;

	return tee(w->fd, w->word, 1, 0) == 1 && read(w->fd, &byte, 1) == 1 &&
	       read((int)w->aio, &byte, 1) == 1;
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
	int fd = open_fifo(w, O_RDONLY);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void wake_open(struct wait *w)
{
	int fd = open_fifo(w, O_WRONLY | O_NONBLOCK);

	if (fd >= 0)
		close(fd);
}

#endif
