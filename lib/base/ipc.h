/*
 * Messages between the processes: SOCK_SEQPACKET pairs, one datagram a
 * message, descriptors with it. What the messages mean is daemon/msg/msg.h.
 *
 * Sending never waits on a socket that is set non-blocking: a peer that does
 * not read is the caller's to judge (-EAGAIN).
 */
#ifndef LIB_BASE_IPC_H
#define LIB_BASE_IPC_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

/* A path of PATH_MAX, and everything else that a message carries. */
#define IPC_SIZE_MAX 16384
/* The most that one message of daemon/msg/msg.h needs. */
#define IPC_FDS_MAX 4

struct ipc_message {
	_Alignas(8) uint8_t bytes[IPC_SIZE_MAX];
	size_t size;
	int fds[IPC_FDS_MAX]; /* -1 where there is none */
	size_t n_fds;
};

/* Two connected ends, both CLOEXEC, both blocking. Returns 0 or -errno. */
must_check int ipc_pair(int ret_fds[2]);

/*
 * Sends one message; the descriptors stay the caller's. Returns 0, -EAGAIN if
 * the socket is non-blocking and full, -EPIPE if the peer is gone (never
 * SIGPIPE), or sendmsg's error.
 */
must_check int ipc_send(int fd, const void *bytes, size_t size, const int *fds, size_t n_fds);

/*
 * Takes one message. Returns 1, 0 at the end (the peer has closed), -EAGAIN if
 * the socket is non-blocking and empty, -EPROTO if the message is larger or
 * carries more descriptors than allowed (all are closed), or recvmsg's error.
 * The descriptors in *ret are the caller's: take them out by ipc_take_fd, and
 * close what is left by ipc_close_fds.
 */
must_check int ipc_recv(int fd, struct ipc_message *ret);

/* The message's descriptor at index, now the caller's; -1 if there is none. */
int ipc_take_fd(struct ipc_message *m, size_t index);

/* Closes the descriptors that nobody took. */
void ipc_close_fds(struct ipc_message *m);

#endif
