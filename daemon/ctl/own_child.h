/*
 * A child process of sentry-profctl's own: a sentry-profd-ship or a
 * sentry-profd-unwind, started as the broker starts its children, for a few
 * messages, and ended.
 */
#ifndef DAEMON_CTL_OWN_CHILD_H
#define DAEMON_CTL_OWN_CHILD_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/config/accounts.h"
#include "daemon/msg/msg.h"
#include "lib/base/ipc.h"
#include "lib/base/util.h"

struct own_child {
	int32_t pid; /* 0: none runs */
	int fd;	     /* its socket, blocking */
};

/*
 * Each starts one with n files for the bits of mask (struct msg_init), in that
 * order; they stay the caller's. As root the child gets its account. Returns 0
 * when it is ready, or -errno; own_child_end is due in both cases.
 */
must_check int own_child_start_ship(struct own_child *c, const int *files, size_t n, uint32_t mask);
/* page_fd: as in struct msg_init. */
must_check int own_child_start_unwind(struct own_child *c, int page_fd);

/*
 * Receives a message of this type into m, without descriptors, and
 * waits as long as that takes. Returns 0, -EPIPE if the child has ended,
 * -EPROTO for another message, or -errno.
 */
must_check int own_child_take(const struct own_child *c, enum msg_type type, struct ipc_message *m);

/* Kills it, if it runs. */
void own_child_end(struct own_child *c);

#endif
