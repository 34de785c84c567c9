/*
 * Reports to the service manager (notify.h) that the daemon is ready, what it does, and that
 * capture makes progress.
 */
#ifndef DAEMON_BROKER_REPORT_SERVICE_H
#define DAEMON_BROKER_REPORT_SERVICE_H

#include "daemon/broker/report/notify.h"
#include "daemon/broker/report/modules.h"

/*
 * Calls notify_init(). Call it once, before the first child is started. After an error of
 * notify_init(), logs a line, and nothing is reported.
 */
void service_init(struct notify *n);

/*
 * To be called at every turn. Sends READY=1 when capture and a ship have sent MSG_READY. Sends
 * WATCHDOG=1 (notify_check()) if one of these is true: capture shows new heartbeats, nothing is
 * profiled, or no capture is to run.
 *
 * A capture that hangs is replaced (children/watch.h) long before the manager's watchdog expires.
 * So the watchdog is for a broker that hangs, and for a capture that cannot be replaced.
 */
void service_check(struct notify *n, struct modules *modules);

/* To be called when a reload begins, and when it has ended, successfully or not. */
void service_reloads(struct notify *n);
void service_reloaded(struct notify *n);

/* To be called when the daemon begins to end. */
void service_stops(struct notify *n);

#endif
