/*
 * What the three child processes have in common: how they start, and how they
 * take a message apart.
 */
#ifndef DAEMON_CHILD_H
#define DAEMON_CHILD_H

#include "daemon/msg.h"

/*
 * For main: prints the version for --version and exits; exits with one line if
 * the process was not started by the broker; waits for MSG_INIT and returns
 * it. *ret_init keeps its descriptors. name is a string literal.
 */
const struct msg_init *child_start(int argc, char **argv, const char *name,
				   struct ipc_message *ret_init);

/* Tells the broker that all is set up. Exits if the broker is gone. */
void child_is_ready(void);

/*
 * The message as a struct of this size, or NULL if it is of another size or
 * its header is wrong.
 */
const void *msg_of_size(const struct ipc_message *m, size_t size);

/* The type in the header; 0 if the message is too short to have one. */
uint32_t msg_type_of(const struct ipc_message *m);

/*
 * A message that a process takes: m->bytes is the struct, and there are fds
 * descriptors at least, to be taken by ipc_take_fd. handle returns 0 or a
 * negative errno.
 */
struct msg_rule {
	uint32_t type;
	uint32_t size;
	uint32_t fds;
	int (*handle)(void *ctx, struct ipc_message *m);
};

#define MSG_RULE(message_type, type_name, n_fds, handler)                    \
	{                                                                    \
		(message_type), sizeof(struct type_name), (n_fds), (handler) \
	}

/*
 * Calls the handler of m. Returns what that returns, or -EPROTO if m follows
 * none of the n rules. Descriptors that were not taken stay in m.
 */
must_check int msg_handle(const struct msg_rule *rules, size_t n, void *ctx,
			  struct ipc_message *m);

#define MSG_HEADER(message_type, type_name)                              \
	{                                                                \
		.type = (message_type), .size = sizeof(struct type_name) \
	}

#endif
