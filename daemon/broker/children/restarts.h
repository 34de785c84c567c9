/*
 * How often children were started again that were to go on, and why: one figure
 * for each kind and reason, over the whole run.
 */
#ifndef DAEMON_BROKER_CHILDREN_RESTARTS_H
#define DAEMON_BROKER_CHILDREN_RESTARTS_H

#include "daemon/broker/children/child.h"

/* A literal: the name of a label, and of a key in JSON. */
const char *restart_reason_name(enum restart_reason reason);

/* child has ended with this status of wait4(2), and another takes its place. */
void restarts_count(struct restarts *r, const struct child *child, int status);

#endif
