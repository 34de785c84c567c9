/*
 * Finds the other end of a connected AF_UNIX socket, also of a pair that socketpair(2) made, by its
 * inode: the N of "socket:[N]" in /proc/PID/fd. Asks the kernel by sock_diag(7), which any user may
 * do. The kernel answers for the caller's network namespace only, and may lack CONFIG_UNIX_DIAG.
 */
#ifndef DAEMON_PROCESS_UNIX_PEER_H
#define DAEMON_PROCESS_UNIX_PEER_H

#include <stdint.h>

#include "lib/base/util.h"

/* Opens a netlink socket for unix_peer_find(), which the caller closes. Returns 0 or -errno. */
must_check int unix_peer_open(int *ret_fd);

/*
 * Writes the inode of the socket that the socket of this inode is connected with; 0: it is not
 * connected. Returns 0; -ENOENT if the socket is not one of AF_UNIX, belongs to another network
 * namespace, or the kernel lacks CONFIG_UNIX_DIAG; -EPROTO for an answer that makes no sense; or an
 * error of send(2) or recv(2).
 */
must_check int unix_peer_find(int fd, uint32_t inode, uint32_t *ret_peer);

#endif
