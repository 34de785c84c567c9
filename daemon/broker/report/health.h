/*
 * Notices the begin and the end of those degraded states (state/degraded.h) that no event tells:
 * what the machine lacks, and what the parts of the broker show when they are looked at.
 */
#ifndef DAEMON_BROKER_REPORT_HEALTH_H
#define DAEMON_BROKER_REPORT_HEALTH_H

#include "daemon/broker/report/modules.h"

/* Call it once at the start, before the broker gives up capabilities that its children need. */
void health_start(struct modules *modules);

/* To be called once a second, and before the broker ends. */
void health_check(struct modules *modules);

#endif
