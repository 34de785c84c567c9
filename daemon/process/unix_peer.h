/*
 * Finds the socket that an AF_UNIX socket is connected with, also in a pair of socketpair(2).
 * A socket is named by its inode: the N of "socket:[N]" in /proc/PID/fd. The kernel answers through
 * sock_diag(7), which any user may use, for the caller's network namespace only.
 */
#ifndef DAEMON_PROCESS_UNIX_PEER_H
#define DAEMON_PROCESS_UNIX_PEER_H

#include <stdint.h>

#include "lib/base/util.h"

/* Opens a netlink socket for unix_peer_find(), which the caller closes. Returns 0 or -errno. */
must_check int unix_peer_open(int *ret_fd);

/*
 * Sets *ret_peer to the inode of the socket with which the socket inode is connected; 0: it is not
 * connected. fd is of unix_peer_open(). Returns 0; -ENOENT if inode is not that of an AF_UNIX
 * socket of this network namespace, or if the kernel lacks CONFIG_UNIX_DIAG; -EPROTO if the answer
 * is malformed; or another error of the kernel, send(2) or recv(2).
 */
must_check int unix_peer_find(int fd, uint32_t inode, uint32_t *ret_peer);

#endif
