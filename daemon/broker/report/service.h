/*
 * Reports to the service manager (notify.h) the state of the daemon (ready, reloading, stopping),
 * the line of `systemctl status`, and that capture makes progress (WATCHDOG=1).
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
 * To be called at every turn. Sends READY=1 when capture and a ship have sent MSG_READY. Sends the
 * line of `systemctl status`, such as "3 processes profiled", when it changes. Sends WATCHDOG=1
 * (notify_check()) if capture shows new heartbeats, if nothing is profiled, or if capture would not
 * be restarted if it ended now (child_is_wanted).
 *
 * A capture that hangs is replaced (children/watch.h) long before the manager's watchdog expires.
 * So the watchdog is for a broker that hangs, and for a capture that cannot be replaced.
 */
void service_check(struct notify *n, struct modules *modules);

/*
 * To be called when a reload begins (sends RELOADING=1), and when it has ended (READY=1). Nothing
 * is sent before the first READY=1, which service_check() sends.
 */
void service_reloads(struct notify *n);
void service_reloaded(struct notify *n);

/* To be called when the daemon begins to end. Sends STOPPING=1. */
void service_stops(struct notify *n);

#endif
