/* What capture and unwind processes say: a rule for each of their messages. */
#ifndef DAEMON_BROKER_CHILDREN_INBOX_H
#define DAEMON_BROKER_CHILDREN_INBOX_H

#include "daemon/broker/children/children.h"

struct broker;

void unwind_on_message(struct child *child, struct ipc_message *m);
void capture_on_message(struct child *child, struct ipc_message *m);

#endif
