/* A TCP connection whose last close(2) would hang the process, for tests of daemon/common/drain.h.
 */
#ifndef TESTS_UNIT_DAEMON_LINGERING_H
#define TESTS_UNIT_DAEMON_LINGERING_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/unit/suite.h"

/* Longer than the timeout of a test, so a close(2) that lingers fails the test. */
#define LINGER_S 3600

/*
 * Returns a full TCP connection whose peer never reads, so that its last close(2) lingers. The peer
 * is in the queue of *ret_listener, which the caller closes at the end.
 */
static inline int lingering(int *ret_listener)
{
	const struct linger linger = {.l_onoff = 1, .l_linger = LINGER_S};
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t size = sizeof(address);
	static const char much[65536];
	int fd;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*ret_listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	OK(bind(*ret_listener, (struct sockaddr *)&address, size));
	OK(listen(*ret_listener, 1));
	OK(getsockname(*ret_listener, (struct sockaddr *)&address, &size));
	OK(connect(fd, (struct sockaddr *)&address, size));
	OK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	while (send(fd, much, sizeof(much), MSG_DONTWAIT) > 0)
		continue;
	return fd;
}

#endif
