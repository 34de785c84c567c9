/*
 * Tells the service manager (notify.h) that the daemon is up, what it does, and that samples
 * are being taken.
 */
#ifndef DAEMON_BROKER_REPORT_SERVICE_H
#define DAEMON_BROKER_REPORT_SERVICE_H

#include "daemon/broker/parts/parts.h"
#include "daemon/broker/report/notify.h"

/*
 * Once, before the first child is started. Says so if the environment is
 * wrong, and goes on: then nobody is told.
 */
void service_init(struct notify *n);

/*
 * At every turn. READY=1 when capture and ship have been set up. The watchdog
 * is answered as long as capture shows new heartbeats, or nothing is profiled:
 * one that hangs is replaced by watch.c long before; this is for a broker that
 * hangs itself, and for a capture that no other takes the place of.
 */
void service_check(struct notify *n, struct parts *parts);

/* A reload begins; with its end, in success or not, all is as before. */
void service_reloads(struct notify *n);
void service_reloaded(struct notify *n);

/* The end has begun. */
void service_stops(struct notify *n);

#endif
