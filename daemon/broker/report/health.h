/*
 * Begins and ends those degraded states (state/degraded.h) that no event reports, so that the
 * broker has to look for them: what the machine lacks, such as a capability, and faults around the
 * broker, such as a spool that was removed.
 */
#ifndef DAEMON_BROKER_REPORT_HEALTH_H
#define DAEMON_BROKER_REPORT_HEALTH_H

#include "daemon/broker/report/modules.h"

/*
 * Begins the states that the machine causes, which stay until the broker ends. Call it once at the
 * start, while the broker still has all capabilities.
 */
void health_start(struct modules *modules);

/*
 * Begins and ends the states that can change. Call it once a second, and a last time before the
 * statistics are written at the end.
 */
void health_check(struct modules *modules);

#endif
