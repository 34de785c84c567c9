/*
 * The daemon's metrics in Prometheus' text formats: the answer to METRICS and OPENMETRICS on the
 * daemon's socket. sentry-profd-metrics serves it by HTTP; sentry-profctl metrics prints it. The
 * names are an interface: sentry-profd(8).
 */
#ifndef DAEMON_BROKER_REPORT_METRICS_H
#define DAEMON_BROKER_REPORT_METRICS_H

#include "daemon/process/peer.h"
#include "lib/base/util.h"

struct parts;

/*
 * Writes the metrics as OpenMetrics 1.0 (is_openmetrics) or as Prometheus' text format 0.0.4,
 * which has the same metrics. A viewer who may not see all processes gets the sums of the
 * viewer's own processes, and what the status shows to every user. *ret_fd is a sealed memfd of
 * *ret_size bytes, at its start, and the caller's. Returns 0 or -errno.
 */
must_check int metrics_make(struct parts *parts, const struct peer *viewer, bool is_openmetrics,
			    int *ret_fd, uint32_t *ret_size);

#endif
