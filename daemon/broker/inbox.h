/*
 * Messages from capture, unwind and ship. Checks each message against its rule in daemon/msg/msg.h
 * and passes it to the part of the broker that handles it. A child that breaks a rule is killed.
 */
#ifndef DAEMON_BROKER_INBOX_H
#define DAEMON_BROKER_INBOX_H

#include "daemon/broker/children/child.h"

#include "lib/base/ipc.h"

/*
 * Handles one message. This is the callback message of struct child_events. ctx is the struct
 * broker. The caller closes the descriptors that this function leaves in m.
 */
void inbox_handle(void *ctx, struct child *child, struct ipc_message *m);

#endif
