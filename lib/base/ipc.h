/*
 * Sends and receives messages between the daemon's processes: SOCK_SEQPACKET sockets, one datagram
 * for each message, with file descriptors. daemon/msg/msg.h defines the messages.
 *
 * On a non-blocking socket the functions do not wait: they return -EAGAIN if the peer does not
 * read, or has sent nothing.
 */
#ifndef LIB_BASE_IPC_H
#define LIB_BASE_IPC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "lib/base/util.h"

/* The most bytes of a message: room for a path of PATH_MAX and all other fields. */
#define IPC_SIZE_MAX 16384
/* The most descriptors of a message. */
#define IPC_FDS_MAX 4

struct ipc_message {
	_Alignas(8) uint8_t bytes[IPC_SIZE_MAX];
	size_t size;	      /* of bytes */
	int fds[IPC_FDS_MAX]; /* -1: no descriptor, or taken by ipc_take_fd() */
	size_t n_fds;	      /* as received; those that ipc_take_fd() took out still count */
};

/* Makes two connected sockets, close-on-exec and blocking. Returns 0 or -errno. */
must_check int ipc_pair(int ret_fds[2]);

/*
 * Sends one message with n_fds descriptors, which stay the caller's. fds may be NULL if n_fds is 0.
 * Returns 0; -EINVAL if the message is empty, too large, or has too many descriptors; -EAGAIN if
 * the socket is non-blocking and full; -EPIPE, without SIGPIPE, if the peer has closed its socket;
 * or the error of sendmsg(2).
 */
must_check int ipc_send(int fd, const void *bytes, size_t size, const int *fds, size_t n_fds);

/*
 * Receives one message by recvmsg(2), which it calls again after EINTR. Returns its length; 0 if
 * the peer has closed its socket and all that it had sent is read; -EAGAIN if the socket is
 * non-blocking, or flags have MSG_DONTWAIT, and there is no message; or the error of recvmsg(2).
 *
 * A peer that closes its socket while messages to it are unread makes the next call on the other
 * socket fail with ECONNRESET. What the peer has sent is still there, and this function reads it.
 */
must_check ssize_t ipc_recvmsg(int fd, struct msghdr *m, int flags);

/*
 * Receives one message. Returns 1; 0 if the peer has closed its socket; -EAGAIN if the socket is
 * non-blocking and empty; -EPROTO if the message is too large or has too many descriptors; -EMFILE
 * if the process may open no more descriptors; or the error of recvmsg(2). After -EPROTO and
 * -EMFILE the message is lost, and its descriptors are closed.
 *
 * After 1 the descriptors in *ret are the caller's, and close-on-exec: take out those that are
 * needed with ipc_take_fd(), and close the others with ipc_close_fds().
 */
must_check int ipc_recv(int fd, struct ipc_message *ret);

/* Removes the descriptor at index from the message and returns it; -1 if there is none. */
int ipc_take_fd(struct ipc_message *m, size_t index);

/* Closes the descriptors that are still in the message. */
void ipc_close_fds(struct ipc_message *m);

#endif
