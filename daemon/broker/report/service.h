/*
 * Reports to the service manager (notify.h) that the daemon is ready, what it does, and that
 * capture makes progress.
 */
#ifndef DAEMON_BROKER_REPORT_SERVICE_H
#define DAEMON_BROKER_REPORT_SERVICE_H

#include "daemon/broker/parts/parts.h"
#include "daemon/broker/report/notify.h"

/*
 * Call it once, before the first child is started. If the environment is malformed, logs a line,
 * and nothing is reported.
 */
void service_init(struct notify *n);

/*
 * To be called at every turn. Sends READY=1 when capture and ship have started. The watchdog is
 * answered while capture shows new heartbeats or nothing is profiled. A capture that hangs is
 * replaced by watch.c long before the watchdog expires: the watchdog is for a broker that hangs,
 * and for a capture that cannot be replaced.
 */
void service_check(struct notify *n, struct parts *parts);

/* A reload begins; it has ended, successfully or not. */
void service_reloads(struct notify *n);
void service_reloaded(struct notify *n);

/* The daemon has begun to end. */
void service_stops(struct notify *n);

#endif
