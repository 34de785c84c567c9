/*
 * The daemon's metrics in Prometheus' text formats: the answer to METRICS and OPENMETRICS on the
 * daemon's socket. sentry-profd-metrics serves them by HTTP; sentry-profctl metrics prints them.
 * The names of the metrics are an interface for others: sentry-profd(8) lists them.
 */
#ifndef DAEMON_BROKER_REPORT_METRICS_H
#define DAEMON_BROKER_REPORT_METRICS_H

#include "daemon/process/peer.h"
#include "lib/base/util.h"

struct modules;

/*
 * Writes the metrics for peer, a peer of the daemon's socket, as OpenMetrics 1.0 (is_openmetrics)
 * or as Prometheus' text format 0.0.4. Both have the same metrics. modules: all parts of the broker
 * (report/modules.h). A peer without sees_all (daemon/process/peer.h) gets only the sums over the
 * processes of the peer's own user (instance_is_seen_by()), the numbers of instances of all users
 * (targets/instance.h), and the size of the spool. *ret_fd: a sealed memfd of *ret_size bytes, with
 * its offset at 0; the caller closes it. Returns 0 or -errno.
 */
must_check int metrics_make(struct modules *modules, const struct peer *peer, bool is_openmetrics,
			    int *ret_fd, uint32_t *ret_size);

#endif
