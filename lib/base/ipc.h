/*
 * Sends and receives messages between the daemon's processes: SOCK_SEQPACKET sockets, one datagram
 * for each message, with file descriptors. daemon/msg/msg.h defines the messages.
 *
 * On a non-blocking socket no function waits: -EAGAIN means that the peer does not read, or has
 * sent nothing.
 */
#ifndef LIB_BASE_IPC_H
#define LIB_BASE_IPC_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

/* Bytes of a message: room for a path of PATH_MAX and all other fields. */
#define IPC_SIZE_MAX 16384
/* Descriptors of a message. */
#define IPC_FDS_MAX 4

struct ipc_message {
	_Alignas(8) uint8_t bytes[IPC_SIZE_MAX];
	size_t size;
	int fds[IPC_FDS_MAX]; /* -1: none, or taken */
	size_t n_fds;
};

/* Makes two connected sockets, close-on-exec and blocking. Returns 0 or -errno. */
must_check int ipc_pair(int ret_fds[2]);

/*
 * Sends one message; the descriptors stay the caller's. Returns 0; -EINVAL if the message is empty
 * or too large; -EAGAIN if the socket is non-blocking and full; -EPIPE, without SIGPIPE, if the
 * peer has closed; or the error of sendmsg(2).
 */
must_check int ipc_send(int fd, const void *bytes, size_t size, const int *fds, size_t n_fds);

/*
 * Receives one message. Returns 1; 0 if the peer has closed; -EAGAIN if the socket is non-blocking
 * and empty; -EPROTO if the message is too large or has too many descriptors, which are closed;
 * -EMFILE if the process may open no more descriptors, so that the message is lost with those that
 * it has; or the error of recvmsg(2). The descriptors in *ret are the caller's: take out those that
 * are needed with ipc_take_fd(), and close the others with ipc_close_fds().
 */
must_check int ipc_recv(int fd, struct ipc_message *ret);

/* Removes the descriptor at index from the message and returns it, or -1 if there is none. */
int ipc_take_fd(struct ipc_message *m, size_t index);

/* Closes the descriptors that are still in the message. */
void ipc_close_fds(struct ipc_message *m);

#endif
