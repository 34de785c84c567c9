/*
 * Messages from capture, unwind and ship: checks each against its rule in daemon/msg/msg.h,
 * and passes it to the part of the broker that it is for. A child that breaks a rule is
 * killed.
 */
#ifndef DAEMON_BROKER_INBOX_H
#define DAEMON_BROKER_INBOX_H

#include "daemon/broker/children/child.h"

#include "lib/base/ipc.h"

/* message of struct child_events, whose ctx is the struct broker. */
void inbox_take(void *ctx, struct child *child, struct ipc_message *m);

#endif
