/*
 * What the service manager is told: the protocol of sd_notify(3), a datagram
 * of a few lines. By hand, as libsystemd would bring a dozen libraries into the
 * broker (docs/ARCHITECTURE.md).
 *
 * Nothing here waits: what the manager's socket has no room for stays due, and
 * is sent at a later notify_check. Without NOTIFY_SOCKET all of it does
 * nothing.
 */
#ifndef DAEMON_BROKER_REPORT_NOTIFY_H
#define DAEMON_BROKER_REPORT_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/base/util.h"

/* A line that systemctl status shows; what is longer is cut off. */
#define NOTIFY_STATUS_MAX 200

enum notify_state {
	NOTIFY_STARTING, /* nothing is said of it */
	NOTIFY_READY,
	NOTIFY_RELOADING, /* until the next NOTIFY_READY */
	NOTIFY_STOPPING,
};

struct notify {
	int fd; /* -1: nobody listens */
	struct sockaddr_un address;
	socklen_t address_size;
	enum notify_state state;
	uint64_t state_ns; /* since when */
	bool state_due;	   /* it is to be told */
	char status[NOTIFY_STATUS_MAX];
	bool status_due;
	uint64_t watchdog_ns; /* how long it waits for an answer; 0: it does not
			       */
	uint64_t answered_ns; /* the last one; 0: none yet */
	uint64_t beat;	      /* that the last answer was given for */
};

/*
 * Takes NOTIFY_SOCKET, a path or an abstract name, WATCHDOG_USEC and
 * WATCHDOG_PID out of the environment. *ret is in use until notify_fini, also
 * after an error: then nobody is told. Returns 0, also where nobody listens,
 * -EINVAL if a variable is not what it must be, or socket's error.
 */
must_check int notify_init(struct notify *ret);
void notify_fini(struct notify *n);

/* Says it at once if it can. now_ns: CLOCK_MONOTONIC, here and below. */
void notify_state(struct notify *n, enum notify_state state, uint64_t now_ns);

/* The line for an operator; said with the next notify_check if it is another.
 */
void notify_status(struct notify *n, const char *format, ...) printf_like(2, 3);

/*
 * At every turn of the loop: says what is due. The watchdog is answered four
 * times in its interval, as long as beat is another one than at the last
 * answer, or nothing has to beat (is_idle).
 */
void notify_check(struct notify *n, uint64_t now_ns, uint64_t beat, bool is_idle);

#endif
