/*
 * Messages to the service manager (systemd), in the protocol of sd_notify(3): a datagram of a few
 * lines. service.h decides what is sent when. Written without libsystemd, which would bring a dozen
 * libraries into the broker.
 *
 * No function waits. If the manager's socket has no room, a later notify_check() sends the message.
 * Without NOTIFY_SOCKET in the environment no function sends anything. Times are by
 * CLOCK_MONOTONIC, in ns.
 */
#ifndef DAEMON_BROKER_REPORT_NOTIFY_H
#define DAEMON_BROKER_REPORT_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/base/util.h"

/* Bytes of the line that `systemctl status` shows, the NUL included. Longer lines are cut. */
#define NOTIFY_STATUS_MAX 200

enum notify_state {
	NOTIFY_STARTING, /* the state before the first message */
	NOTIFY_READY,
	NOTIFY_RELOADING, /* until the next NOTIFY_READY */
	NOTIFY_STOPPING,
};

struct notify {
	int fd;			    /* -1: no service manager */
	struct sockaddr_un address; /* of the service manager's socket */
	socklen_t address_size;
	enum notify_state state;
	uint64_t state_ns; /* when state was set */
	bool state_due;	   /* state is still to be sent */
	char status[NOTIFY_STATUS_MAX];
	bool status_due;      /* status is still to be sent */
	uint64_t watchdog_ns; /* the watchdog interval; 0: no watchdog */
	uint64_t fed_ns;      /* when WATCHDOG=1 was last sent; 0: not yet */
	uint64_t fed_beat_ns; /* the argument beat_ns of notify_check() at fed_ns */
};

/*
 * Reads NOTIFY_SOCKET (a path or an abstract name), WATCHDOG_USEC and WATCHDOG_PID, and removes
 * them from the environment. Returns 0, also without a service manager; -EINVAL if a variable is
 * malformed; or the negative errno of socket(2). After an error *ret is valid, and nothing is sent.
 */
must_check int notify_init(struct notify *ret);
/* Closes the socket. */
void notify_fini(struct notify *n);

/*
 * Sets the state, if it is another one, and sends it at once if the manager's socket has room. Does
 * nothing without a service manager.
 */
void notify_state(struct notify *n, enum notify_state state, uint64_t now_ns);

/* Sets the line of `systemctl status`; newlines become blanks. The next notify_check() sends the
 * line if it has changed. */
void notify_status(struct notify *n, const char *format, ...) printf_like(2, 3);

/*
 * To be called at every turn: sends the state and the line of `systemctl status` if they are due.
 * Also sends WATCHDOG=1, which restarts the manager's watchdog, four times in watchdog_ns, but only
 * if beat_ns has changed since the last WATCHDOG=1. beat_ns: the time of capture's newest
 * heartbeat; 0: none yet. is_idle: no progress is expected now, so WATCHDOG=1 is sent anyway.
 */
void notify_check(struct notify *n, uint64_t now_ns, uint64_t beat_ns, bool is_idle);

#endif
