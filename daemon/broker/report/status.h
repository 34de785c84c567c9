/*
 * The status of the daemon as JSON, for sentry-profctl status. docs/sentry-profctl.8 describes
 * the keys.
 */
#ifndef DAEMON_BROKER_REPORT_STATUS_H
#define DAEMON_BROKER_REPORT_STATUS_H

#include "daemon/process/peer.h"
#include "lib/base/util.h"

struct parts;

/*
 * Writes the status for viewer, who sees the processes of other users only as an operator or a
 * viewer (daemon/process/peer.h). *ret_fd is a sealed memfd of *ret_size bytes, at its start,
 * and the caller's. Returns 0 or -errno.
 */
must_check int status_make(struct parts *parts, const struct peer *viewer, int *ret_fd,
			   uint32_t *ret_size);

#endif
