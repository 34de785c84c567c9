/*
 * The status of the daemon as JSON, for sentry-profctl status. The status is an interface for
 * scripts: docs/sentry-profctl.8 describes each member and its type.
 */
#ifndef DAEMON_BROKER_REPORT_STATUS_H
#define DAEMON_BROKER_REPORT_STATUS_H

#include "daemon/process/peer.h"
#include "lib/base/util.h"

struct modules;

/*
 * Writes the status for peer, a peer of the daemon's socket. modules: all parts of the broker
 * (report/modules.h). The status lists all instances. If peer->sees_all is false, members about
 * the daemon itself, such as "degraded", and the statistics of other users' processes are null
 * (instance_is_seen_by()). *ret_fd: a sealed memfd of *ret_size bytes, with its offset at 0; the
 * caller closes it. Returns 0 or -errno.
 */
must_check int status_make(struct modules *modules, const struct peer *peer, int *ret_fd,
			   uint32_t *ret_size);

#endif
