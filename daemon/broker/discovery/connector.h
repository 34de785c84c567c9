/*
 * The kernel's proc connector: it tells of every fork, exec and change of user
 * or name on the machine, as it happens (Linux 2.6.15, CONFIG_PROC_EVENTS;
 * include/uapi/linux/cn_proc.h). To listen takes CAP_NET_ADMIN, and the first
 * network and pid namespace: in another one the kernel stays silent, without
 * an error. So nothing is to be relied on before it has answered.
 *
 * Threads and ends are filtered out before they reach us.
 */
#ifndef DAEMON_BROKER_DISCOVERY_CONNECTOR_H
#define DAEMON_BROKER_DISCOVERY_CONNECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

enum connector_what {
	CONNECTOR_ANSWER, /* it has heard that we listen */
	CONNECTOR_FORK,	  /* pid is new */
	CONNECTOR_EXEC,	  /* pid runs a new program */
	CONNECTOR_CHANGE, /* of pid's user or name */
};

struct connector_event {
	enum connector_what what;
	int32_t pid;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
};

/*
 * Opens it, and asks to be told; it needs CAP_NET_ADMIN only now and, to leave,
 * in connector_close. Returns 0 or -errno.
 */
must_check int connector_open(int *ret_fd);
void connector_close(int *fd);

/* A message of the kernel's. False if it is none that we want. */
bool connector_parse(const void *message, size_t n, struct connector_event *ret);

/*
 * Calls fn for each event that is there, up to some thousand. Never waits.
 * Returns 0, or -ENOBUFS if some were lost.
 */
typedef void (*connector_fn)(void *ctx, const struct connector_event *e);
must_check int connector_read(int fd, connector_fn fn, void *ctx);

#endif
