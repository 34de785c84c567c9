/*
 * What the daemon does, as JSON: sentry-profctl status. docs/sentry-profctl.8
 * has its keys.
 */
#ifndef DAEMON_STATUS_H
#define DAEMON_STATUS_H

#include "daemon/peer.h"
#include "lib/base/util.h"
#include "lib/client/protocol.h"

struct broker;
struct instance;

/*
 * For viewer, who sees the figures of others' processes only if he may operate
 * the daemon. *ret_fd is a sealed memfd of *ret_size bytes, at its start.
 * Returns 0 or -errno.
 */
must_check int status_make(struct broker *b, const struct peer *viewer,
			   int *ret_fd, uint32_t *ret_size);

/* What is done with an instance at present. */
enum protocol_state status_state(const struct broker *b,
				 const struct instance *i);

/* In the JSON, and nowhere else: "profiling". */
const char *status_state_name(enum protocol_state state);

#endif
