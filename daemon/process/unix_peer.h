/*
 * Finds the peer of an AF_UNIX socket: the other end of a connection or of a socketpair(2). Inode
 * numbers name the sockets: the N of "socket:[N]" in /proc/PID/fd. The kernel answers through
 * sock_diag(7), which any user may use, for the caller's network namespace only. Used by
 * `sentry-profctl doctor`, to find the crash reporter that is connected to a process.
 */
#ifndef DAEMON_PROCESS_UNIX_PEER_H
#define DAEMON_PROCESS_UNIX_PEER_H

#include <stdint.h>

#include "lib/base/util.h"

/* Opens a netlink socket for unix_peer_find(). The caller closes *ret_fd. Returns 0 or -errno. */
must_check int unix_peer_open(int *ret_fd);

/*
 * Sets *ret_peer to the inode of the peer of the socket with this inode; 0: the socket has no peer.
 * fd: of unix_peer_open(). Returns 0; -ENOENT if this network namespace has no AF_UNIX socket with
 * this inode, or if the kernel lacks CONFIG_UNIX_DIAG; -EPROTO if the answer is malformed; or
 * another error of the kernel, send(2) or recv(2).
 */
must_check int unix_peer_find(int fd, uint32_t inode, uint32_t *ret_peer);

#endif
