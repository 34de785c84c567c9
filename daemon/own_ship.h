/*
 * A sentry-profd-ship of sentry-profctl's own: started as the broker starts its
 * ships, for a few messages (daemon/msg_ship.h), and ended.
 */
#ifndef DAEMON_OWN_SHIP_H
#define DAEMON_OWN_SHIP_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/msg.h"
#include "lib/base/util.h"

struct own_ship {
	int32_t pid; /* 0: none runs */
	int fd;	     /* its socket, blocking */
};

/* Variables that it gets; NULL at the end. As the broker's. */
extern const char *const own_ship_environment[];

/*
 * Starts one with n files for the bits of mask (struct msg_init), in that
 * order; they stay the caller's. Returns 0 when it is ready, or -errno;
 * own_ship_end is due in both cases. As root it gets the account of ship.
 */
must_check int own_ship_start(struct own_ship *s, const int *files, size_t n,
			      uint32_t mask);

/*
 * Receives a message of this type and size into m, and waits as long as that
 * takes. Returns 0, -EPIPE if ship has ended, -EPROTO for another message, or
 * -errno.
 */
must_check int own_ship_take(const struct own_ship *s, uint32_t type,
			     size_t size, struct ipc_message *m);

/* Kills it, if it runs. */
void own_ship_end(struct own_ship *s);

#endif
