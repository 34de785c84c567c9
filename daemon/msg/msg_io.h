/*
 * Sends messages, checks the shape of received ones, and calls their handlers.
 */
#ifndef DAEMON_MSG_MSG_IO_H
#define DAEMON_MSG_MSG_IO_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/msg/msg.h"
#include "lib/base/ipc.h"
#include "lib/base/util.h"

/*
 * Returns a number that two programs share if their messages and records are the same: the build
 * computes it from the headers. An upgrade replaces executables while the broker runs, which then
 * starts children of another version.
 */
uint64_t msg_number(void);

/*
 * Returns the type in the header, or MSG_NONE if the message is shorter than a header or
 * its size differs from that in the header.
 */
uint32_t msg_type_of(const struct ipc_message *m);

/*
 * Returns the message as the struct of type, or NULL if the message has another type or
 * size, or fewer descriptors than MSG_LIST requires. The struct is part of m.
 */
const void *msg_as(const struct ipc_message *m, enum msg_type type);

/*
 * A type of message that a process accepts, and its handler. m->bytes is the struct of the
 * type, and m has the descriptors that MSG_LIST requires; the handler takes them by
 * ipc_take_fd(). It returns 0 or -errno.
 */
struct msg_rule {
	enum msg_type type;
	int (*handle)(void *ctx, struct ipc_message *m);
};

/*
 * Calls the handler for m. Returns what the handler returns, or -EPROTO if m has the type
 * or the shape of none of the n rules. Descriptors that were not taken stay in m.
 */
must_check int msg_handle(const struct msg_rule *rules, size_t n, void *ctx, struct ipc_message *m);

/* Send a struct msg_id, or a struct msg_number. Return what ipc_send() returns. */
must_check int msg_send_id(int socket, enum msg_type type, uint32_t id);
must_check int msg_send_number(int socket, enum msg_type type, uint64_t n);

#endif
