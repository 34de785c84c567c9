/*
 * The daemon's figures for a monitoring system, as the text that Prometheus
 * reads: the answer to METRICS and OPENMETRICS on the daemon's socket.
 * sentry-profd-metrics serves it by HTTP, sentry-profctl metrics prints it.
 * sentry-profd(8) describes the names: they are an interface.
 */
#ifndef DAEMON_BROKER_REPORT_METRICS_H
#define DAEMON_BROKER_REPORT_METRICS_H

#include "daemon/process/peer.h"
#include "lib/base/util.h"

struct parts;

/*
 * Writes the daemon's figures as OpenMetrics 1.0 (is_openmetrics), or else as
 * Prometheus' text format 0.0.4, which has the same ones. A viewer who may not
 * see all processes gets the figures of his own, and what the status shows to
 * everybody. *ret_fd is a sealed memfd of *ret_size bytes, at its start.
 * Returns 0 or -errno.
 */
must_check int metrics_make(struct parts *parts, const struct peer *viewer, bool is_openmetrics,
			    int *ret_fd, uint32_t *ret_size);

#endif
