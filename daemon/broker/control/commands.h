/*
 * The requests of operators and clients on the daemon's socket, carried out. control.h reads
 * them from the socket; rights.h says which peer may ask for what.
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
	struct notify *notify;	 /* the service manager is told of a reload */
	struct control *control; /* NULL: there is no socket */
	struct clients clients;
	struct records records;
	struct inspector inspector;
};

/*
 * Makes the socket that the options name, with the rights that the broker still has;
 * none if they name none. On a fault prints one line. Returns 0 or -errno.
 */
must_check int commands_open(struct commands *cmds);
/* Listens to it, when there is a loop. Returns 0 or an error of loop_add. */
must_check int commands_start(struct commands *cmds);
/* At every turn. */
void commands_check(struct commands *cmds);
/* Takes the socket away, and ends all connections. */
void commands_close(struct commands *cmds);

#endif
