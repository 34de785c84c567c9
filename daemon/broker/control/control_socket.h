/*
 * The daemon's socket in the file system: its path, its permissions, and a lock, so that no
 * two daemons use the same path.
 */
#ifndef DAEMON_BROKER_CONTROL_CONTROL_SOCKET_H
#define DAEMON_BROKER_CONTROL_CONTROL_SOCKET_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/util.h"

struct control_socket {
	int fd;	      /* listens, does not block; -1: none */
	bool is_safe; /* its connections take no descriptors (drain.h) */
	int lock_fd;  /* PATH.lock, as long as it is ours */
	char path[PATH_MAX];
	dev_t device; /* of the socket's file */
	ino_t inode;
};

/*
 * Listens at path. Its directory is made if only that is missing; it has to be
 * one in which nobody else can put another socket in our place. public: every
 * user may connect, which is no right to anything yet; else the owner.
 *
 * A socket that nobody listens at is replaced. Returns 0, or -EADDRINUSE if
 * somebody does, -EEXIST if something else is there, -EPERM if others may
 * write in the directory, -ENAMETOOLONG above what a socket's name has room
 * for (unix(7)), or another -errno; then *ret has nothing that is open.
 */
must_check int control_socket_open(const char *path, bool public, struct control_socket *ret);

/* Takes the socket away, if it is still ours; the lock's file stays. */
void control_socket_close(struct control_socket *s);

#endif
