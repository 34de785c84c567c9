/* Two ends that bytes go through: pipes, sockets and a terminal. */
#ifndef TESTS_TARGETS_ENDS_H
#define TESTS_TARGETS_ENDS_H

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <termios.h>

#include "target.h"

static inline void open_pipe(int *ret_from, int *ret_to)
{
	int ends[2];

	need(pipe(ends) == 0);
	*ret_from = ends[0];
	*ret_to = ends[1];
}

/* SOCK_STREAM or SOCK_DGRAM. */
static inline void open_pair(int type, int *ret_fd, int *ret_other)
{
	int ends[2];

	need(socketpair(AF_UNIX, type, 0, ends) == 0);
	*ret_fd = ends[0];
	*ret_other = ends[1];
}

/* Raw: no byte has a meaning. */
static inline void open_terminal(int *ret_fd, int *ret_master)
{
	const int master = posix_openpt(O_RDWR | O_NOCTTY);
	struct termios t;
	int fd;

	need(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	fd = open(ptsname(master), O_RDWR | O_NOCTTY);
	need(fd >= 0 && tcgetattr(fd, &t) == 0);
	cfmakeraw(&t);
	need(tcsetattr(fd, TCSANOW, &t) == 0);
	*ret_fd = fd;
	*ret_master = master;
}

static inline int open_tcp(void)
{
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	need(fd >= 0);
	return fd;
}

static inline int listen_tcp(int backlog)
{
	struct sockaddr_in name = {.sin_family = AF_INET};
	const int fd = open_tcp();

	name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	need(bind(fd, (const void *)&name, sizeof(name)) == 0 &&
	     listen(fd, backlog) == 0);
	return fd;
}

/* Returns what connect(2) returns. */
static inline int connect_tcp(int fd, int listener)
{
	struct sockaddr_in name;
	socklen_t size = sizeof(name);

	need(getsockname(listener, (void *)&name, &size) == 0);
	return connect(fd, (const void *)&name, size);
}

#endif
