/*
 * How often children were started again that were to go on, and why: one figure
 * for each kind and reason, over the whole run.
 */
#ifndef DAEMON_BROKER_CHILDREN_RESTARTS_H
#define DAEMON_BROKER_CHILDREN_RESTARTS_H

#include <stdint.h>

#include "daemon/broker/children/children.h"

struct broker;

enum restart_reason {
	RESTART_SIGNAL,	   /* a signal that was not ours ended it */
	RESTART_STATUS,	   /* it ended by itself */
	RESTART_HEARTBEAT, /* it showed none, and was killed */
	RESTART_DISMISSED, /* it broke a rule, and was killed */
	RESTART_REASON_N,
};

struct restarts {
	uint64_t n[CHILD_KIND_N][RESTART_REASON_N];
};

/* A literal: the name of a label, and of a key in JSON. */
const char *restart_reason_name(enum restart_reason reason);

/* child has ended with this status of wait4(2), and another takes its place. */
void restarts_count(struct broker *b, const struct child *child, int status);

#endif
