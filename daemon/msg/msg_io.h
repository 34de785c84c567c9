/*
 * Sending messages, and taking received ones apart.
 */
#ifndef DAEMON_MSG_MSG_IO_H
#define DAEMON_MSG_MSG_IO_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/msg/msg.h"
#include "lib/base/ipc.h"
#include "lib/base/util.h"

/*
 * The type in the header; MSG_NONE if the size in the header is wrong, or the
 * message is too short to have one.
 */
uint32_t msg_type_of(const struct ipc_message *m);

/*
 * The message as the struct of its type, or NULL if it is of another type, has
 * another size or too few descriptors.
 */
const void *msg_as(const struct ipc_message *m, enum msg_type type);

/*
 * A message that a process takes: m->bytes is the struct, and the descriptors
 * of MSG_LIST are there, to be taken by ipc_take_fd. handle returns 0 or a
 * negative errno.
 */
struct msg_rule {
	enum msg_type type;
	int (*handle)(void *ctx, struct ipc_message *m);
};

/*
 * Calls the handler of m. Returns what that returns, or -EPROTO if m follows
 * none of the n rules. Descriptors that were not taken stay in m.
 */
must_check int msg_handle(const struct msg_rule *rules, size_t n, void *ctx, struct ipc_message *m);

/* Send a struct msg_id or a struct msg_number. Return what ipc_send does. */
must_check int msg_send_id(int socket, enum msg_type type, uint32_t id);
must_check int msg_send_number(int socket, enum msg_type type, uint64_t n);

#endif
