/*
 * Carries out the requests of operators and clients on the daemon's socket. control.h reads and
 * checks them; rights.h decides which peer may request what.
 */
#ifndef DAEMON_BROKER_CONTROL_COMMANDS_H
#define DAEMON_BROKER_CONTROL_COMMANDS_H

#include "daemon/broker/control/clients.h"
#include "daemon/broker/control/inspect.h"
#include "daemon/broker/control/recordings.h"
#include "lib/base/util.h"

struct control;
struct notify;
struct parts;

struct commands {
	struct parts *parts;	 /* the broker's parts (parts/parts.h) */
	struct notify *notify;	 /* to report a reload to the service manager */
	struct control *control; /* NULL: no socket */
	struct clients clients;
	struct recordings recordings;
	struct inspector inspector;
};

/*
 * Makes the socket that the options name, or in service mode the default one. The caller has set
 * cmds->parts, and calls this function before privileges are dropped. On an error logs one line.
 * Returns 0, also if no socket is configured, or -errno.
 */
must_check int commands_open(struct commands *cmds);
/*
 * Accepts connections from now on. Call it when the event loop exists. Returns 0 or an error of
 * loop_add().
 */
must_check int commands_start(struct commands *cmds);
/* Calls control_check(). The caller calls this function in every turn of the event loop. */
void commands_check(struct commands *cmds);
/* Removes the socket and ends all connections. */
void commands_close(struct commands *cmds);

#endif
