/*
 * Checks for those degraded states (state/degraded.h) that begin and end without an event: what the
 * machine lacks, such as a capability, and faults around the broker, such as a spool that was
 * removed.
 */
#ifndef DAEMON_BROKER_REPORT_HEALTH_H
#define DAEMON_BROKER_REPORT_HEALTH_H

#include "daemon/broker/report/modules.h"

/* Call it once at the start, before the broker gives up capabilities that its children need. */
void health_start(struct modules *modules);

/* To be called once a second, and before the broker ends. */
void health_check(struct modules *modules);

#endif
