/*
 * Sends messages between the processes of sentry-profd (daemon/msg/msg.h), checks the size and
 * descriptors of received messages, and calls their handlers.
 */
#ifndef DAEMON_MSG_MSG_IO_H
#define DAEMON_MSG_MSG_IO_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/msg/msg.h"
#include "lib/base/ipc.h"
#include "lib/base/util.h"

/*
 * Returns the number of this version of the messages and records, which the build computes from the
 * headers. A broker and a child with different numbers do not understand each other. That occurs
 * when an upgrade has replaced the executables while the broker runs.
 */
uint64_t msg_number(void);

/*
 * Returns the type in the header, or MSG_NONE if the message is shorter than a header or
 * its size differs from that in the header.
 */
uint32_t msg_type_of(const struct ipc_message *m);

/*
 * Returns the message as the struct of type, or NULL if the message has another type or
 * size, or fewer descriptors than MSG_LIST requires. The result points into m.
 */
const void *msg_as(const struct ipc_message *m, enum msg_type type);

/*
 * A type of message that a process accepts, and its handler. m->bytes is the struct of the type,
 * and m has at least the descriptors that MSG_LIST requires. A handler that keeps a descriptor
 * takes it by ipc_take_fd(). The handler returns 0 or -errno.
 */
struct msg_rule {
	enum msg_type type;
	int (*handle)(void *ctx, struct ipc_message *m);
};

/*
 * Calls the handler of the rule for m, one of n rules, with ctx. Returns the result of the handler;
 * or -EPROTO if no rule has the type of m, or if m has a wrong size or too few descriptors.
 * Descriptors that the handler did not take stay in m; the caller closes them by ipc_close_fds().
 */
must_check int msg_handle(const struct msg_rule *rules, size_t n, void *ctx, struct ipc_message *m);

/* Send a struct msg_id, or a struct msg_number. Return 0, or the error of ipc_send(). */
must_check int msg_send_id(int socket, enum msg_type type, uint32_t id);
must_check int msg_send_number(int socket, enum msg_type type, uint64_t n);

#endif
