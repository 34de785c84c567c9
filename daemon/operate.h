/*
 * What is asked of the daemon over its socket, and done: the part of
 * daemon/control.h that knows the broker.
 *
 * Who may what: root, the daemon's own user and the group sentry-profd
 * everything; a user what is about processes of his own; everybody STATUS,
 * in which others' figures are left out.
 */
#ifndef DAEMON_OPERATE_H
#define DAEMON_OPERATE_H

#include "daemon/control.h"

struct broker;

/*
 * Makes the socket that the options name, with the rights that we still have;
 * none if they name none. On a fault prints one line.
 */
must_check int operate_open(struct broker *b);
/* Listens to it, when there is a loop. */
must_check int operate_start(struct broker *b);
/* At every turn. */
void operate_check(struct broker *b);
/* Takes it away. */
void operate_close(struct broker *b);

/* Of the processes of a user who may not operate the daemon, at a time. */
#define OPERATE_ATTACHED_MAX 8

/* Those of control.h's struct control_user; ctx is the broker. For tests. */
void operate_ask(void *ctx, struct control_peer *peer,
		 const struct protocol_request *m, struct control_answer *ret);
void operate_gone(void *ctx, struct control_peer *peer);

#endif
