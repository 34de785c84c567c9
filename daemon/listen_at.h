/*
 * Where a server of this machine alone listens: the absolute path of a socket,
 * 127.0.0.1:PORT or [::1]:PORT.
 */
#ifndef DAEMON_LISTEN_AT_H
#define DAEMON_LISTEN_AT_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/base/util.h"

struct listen_at {
	union {
		struct sockaddr any; /* its family is one of these three's */
		struct sockaddr_un path;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	};
	socklen_t size;
};

/* Returns 0, -EINVAL, or -ENAMETOOLONG of a path. */
must_check int listen_at_parse(const char *where, struct listen_at *ret);

#endif
