/*
 * Carries out the requests of operators and clients on the daemon's socket. control.h reads and
 * checks them; rights.h decides which peer may request what.
 */
#ifndef DAEMON_BROKER_CONTROL_COMMANDS_H
#define DAEMON_BROKER_CONTROL_COMMANDS_H

#include "daemon/broker/control/clients.h"
#include "daemon/broker/control/inspect.h"
#include "daemon/broker/control/record.h"
#include "lib/base/util.h"

struct control;
struct notify;
struct parts;

struct commands {
	struct parts *parts;
	struct notify *notify;	 /* to report a reload to the service manager */
	struct control *control; /* NULL: no socket */
	struct clients clients;
	struct records records;
	struct inspector inspector;
};

/*
 * Makes the socket that the options name, or in service mode the default one. Call it before
 * privileges are dropped. On an error prints one line. Returns 0 (also without a socket) or
 * -errno.
 */
must_check int commands_open(struct commands *cmds);
/*
 * Accepts connections from now on. Call it when the event loop exists. Returns 0 or an error of
 * loop_add().
 */
must_check int commands_start(struct commands *cmds);
/* To be called at every turn: control_check(). */
void commands_check(struct commands *cmds);
/* Removes the socket and ends all connections. */
void commands_close(struct commands *cmds);

#endif
