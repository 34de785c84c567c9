/*
 * The daemon's socket in the file system: its path, its permissions, and a lock that prevents
 * two daemons from using the same path.
 */
#ifndef DAEMON_BROKER_CONTROL_CONTROL_SOCKET_H
#define DAEMON_BROKER_CONTROL_CONTROL_SOCKET_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/util.h"

struct control_socket {
	int fd;	      /* listening, non-blocking; -1: none */
	bool is_safe; /* the kernel refuses descriptors on its connections (drain.h) */
	int lock_fd;  /* the locked file PATH.lock; -1: none */
	char path[PATH_MAX];
	dev_t device; /* identify the socket's file */
	ino_t inode;
};

/*
 * Listens at path. Makes the directory of path if only that is missing. No other user may be able
 * to replace the socket in it. public: every user may connect (rights.h decides what a peer may
 * do); otherwise only the daemon's user and root.
 *
 * A socket that no process listens at is replaced. Returns 0; -EADDRINUSE if another process
 * listens or holds the lock; -EEXIST if path is no socket; -EPERM if a user who is neither root nor
 * the daemon's owns the directory, or others may write into it and it has no sticky bit;
 * -ENAMETOOLONG if path is longer than a socket's name (unix(7)); or another negative errno. After
 * an error nothing in *ret is open.
 */
must_check int control_socket_open(const char *path, bool public, struct control_socket *ret);

/* Removes the socket, unless path has become another file, and closes it. The lock file stays. */
void control_socket_close(struct control_socket *s);

#endif
