/*
 * Counts the restarts of children that the broker still needed, by kind and reason, over the
 * whole run.
 */
#ifndef DAEMON_BROKER_CHILDREN_RESTARTS_H
#define DAEMON_BROKER_CHILDREN_RESTARTS_H

#include "daemon/broker/children/child.h"

/* Returns the name of a reason, as in metrics and JSON: a string literal. */
const char *restart_reason_name(enum restart_reason reason);

/* Counts a restart: child has ended with this status of wait4(2). */
void restarts_count(struct restarts *r, const struct child *child, int status);

#endif
