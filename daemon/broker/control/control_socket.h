/*
 * The daemon's socket in the file system: its path, its permissions, and a lock that prevents
 * two daemons from using the same path. control.h opens it at the start of the broker.
 */
#ifndef DAEMON_BROKER_CONTROL_CONTROL_SOCKET_H
#define DAEMON_BROKER_CONTROL_CONTROL_SOCKET_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/util.h"

struct control_socket {
	int fd;		  /* listening, non-blocking; -1: none */
	bool refuses_fds; /* the kernel refuses descriptors on its connections (drain.h) */
	int lock_fd;	  /* the locked file PATH.lock; -1: none */
	char path[PATH_MAX];
	dev_t device; /* identify the socket's file */
	ino_t inode;
};

/*
 * Listens at path. Makes the directory of path if only that is missing. Refuses a directory in
 * which another user could replace the socket. public: every user may connect (rights.h decides
 * what a peer may do); otherwise only the daemon's user and root.
 *
 * If path is a socket at which no process listens, this function replaces the socket. Returns 0,
 * or:
 * - -EADDRINUSE: another process listens at path or holds the lock,
 * - -EEXIST: path is not a socket,
 * - -EPERM: the owner of the directory is neither root nor the daemon's user, or the directory is
 *   writable for other users and has no sticky bit,
 * - -ENAMETOOLONG: path is longer than the name of a socket can be (unix(7)),
 * - another negative errno.
 *
 * After an error nothing in *ret is open.
 */
must_check int control_socket_open(const char *path, bool public, struct control_socket *ret);

/*
 * Stops listening, removes the socket's file, unless another file is at path by now, and releases
 * the lock. The lock file stays.
 */
void control_socket_close(struct control_socket *s);

#endif
