/*
 * Reads and closes sockets of the broker without receiving descriptors that the peer sends. The
 * broker must not close the last reference to a descriptor of a peer: that may block for as long as
 * the peer wants (a TCP socket with SO_LINGER, socket(7)). The broker calls drain_recv() for
 * clients and ships, and drain_close() for clients and all children. Messages of capture and unwind
 * carry descriptors that the broker needs, so it reads them by ipc_recv().
 *
 * refuses_fds is true if the kernel refuses descriptors on this socket, because the caller has set
 * the socket's option SO_PASSRIGHTS to 0 (Linux 6.16). Then the functions only call recv(2) and
 * close(2).
 *
 * If refuses_fds is false:
 * - drain_recv() peeks at each message and reads it only if it has no descriptors.
 * - drain_close() forks a child if the queue of the socket has descriptors. The child still has the
 *   socket when this process closes it. Then drain_close() kills the child, whose end drops the
 *   last reference without blocking (PF_EXITING in inet_release() of net/ipv4/af_inet.c). The
 *   caller reaps the child, as any child (SIGCHLD). If fork(2) fails, closing the socket may block.
 */
#ifndef DAEMON_COMMON_DRAIN_H
#define DAEMON_COMMON_DRAIN_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/util.h"

/*
 * Reads one message of fd, a SOCK_SEQPACKET socket, without waiting. Returns its length, at most
 * size: the rest of a longer message is lost. Returns 0 at the end, as ipc_recvmsg(); -EBADMSG
 * if the message has descriptors: it stays in the queue, and the caller calls drain_close();
 * -EAGAIN if there is no message; or another -errno.
 */
must_check ssize_t drain_recv(int fd, bool refuses_fds, void *bytes, size_t size);

/* Closes *fd with the messages that are left in its queue, and sets *fd to -1. *fd may be -1. */
void drain_close(int *fd, bool refuses_fds);

#endif
