/*
 * Carries out the requests of all peers on the daemon's socket: those of sentry-profctl and those
 * of clients, which are about the peer's own process (clients.h). control.h reads and checks the
 * messages; rights.h decides which peer may request what.
 */
#ifndef DAEMON_BROKER_CONTROL_REQUESTS_H
#define DAEMON_BROKER_CONTROL_REQUESTS_H

#include "daemon/broker/control/clients.h"
#include "daemon/broker/control/inspect.h"
#include "daemon/broker/control/recordings.h"
#include "lib/base/util.h"

struct control;
struct notify;
struct modules;

/* All zeros at first, except the pointers that wiring.h sets. */
struct requests {
	struct modules *modules; /* the broker's (report/modules.h) */
	struct notify *notify;	 /* reports a reload to the service manager */
	struct control *control; /* NULL: no socket */
	struct clients clients;
	struct recordings recordings;
	struct inspector inspector;
};

/*
 * Makes the socket that the options name. If the options name none, a broker with discovery
 * (report/modules.h) makes CONFIG_SOCKET_DEFAULT, and any other broker makes no socket. The caller
 * has set requests->modules and requests->notify, and calls this function before privileges are
 * dropped. Returns 0, also without a socket; or -errno, with one log line.
 */
must_check int requests_open(struct requests *requests);
/*
 * Accepts connections from now on. The caller has set the loop of requests->modules->state. Returns
 * 0 or an error of loop_add().
 */
must_check int requests_start(struct requests *requests);
/*
 * To be called at every turn: goes on with requests and connections that wait (control_check()).
 * daemon/broker/turn.c itself calls the check functions of clients, recordings and inspector.
 */
void requests_check(struct requests *requests);
/*
 * Removes the socket, and ends all connections with their clients and recordings. Does nothing if
 * there is no socket, as after an error of requests_open().
 */
void requests_close(struct requests *requests);

#endif
