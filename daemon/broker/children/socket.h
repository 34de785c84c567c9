/* Messages to and from a child process, over its socket. */
#ifndef DAEMON_BROKER_CHILDREN_SOCKET_H
#define DAEMON_BROKER_CHILDREN_SOCKET_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/children/children.h"
#include "daemon/msg/msg.h"

struct broker;

/* A child cannot be trusted any more, or does not read: it is killed. */
void child_fail(struct child *child, const char *why);
/*
 * The same without a word: the child's socket is open until its end. Returns
 * false where it does not run, or was killed before.
 */
bool child_kill(struct child *child);
/* Sends, or fails the child. A child that is not running gets nothing. */
void child_send(struct child *child, const void *message, size_t size, const int *fds,
		size_t n_fds);
/* child_send of a struct msg_id. */
void child_tell(struct child *child, enum msg_type type, uint32_t id);
/* A loop_fn of its socket: takes one message. */
void child_on_readable(void *ctx);
/*
 * Takes the messages that a child sent before it ended, and closes its socket.
 * To be called before wait(2) frees the child's pid: a message that breaks a
 * rule kills that pid.
 */
void child_take_last(struct child *child);
void child_close(struct child *child);

#endif
