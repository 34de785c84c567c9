/*
 * Checks for those degraded states (state/degraded.h) that begin and end without an event: what the
 * machine lacks, such as a capability, and faults around the broker, such as a spool that was
 * removed.
 */
#ifndef DAEMON_BROKER_REPORT_HEALTH_H
#define DAEMON_BROKER_REPORT_HEALTH_H

#include "daemon/broker/report/modules.h"

/* Begins states that the machine causes. Call it while the broker still has all capabilities. */
void health_start(struct modules *modules);

/* Checks the states that can change. Call it once a second, and a last time before the end. */
void health_check(struct modules *modules);

#endif
