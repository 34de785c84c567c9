/*
 * Figures for a monitoring system, in the text format of OpenMetrics 1.0, which
 * Prometheus reads: on a unix socket or a port of loopback, by as much of HTTP
 * as a scraper needs. One request a connection, of 4 KB at most; a client that
 * is slow to ask loses his place, and one that does not read his answer gets
 * what the socket's buffer has room for. Nobody is waited for.
 */
#ifndef DAEMON_METRICS_H
#define DAEMON_METRICS_H

#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/loop.h"
#include "lib/base/util.h"

struct metrics;
struct broker;

/* Writes the text that is served. Returns 0 or -errno. */
typedef int (*metrics_fn)(void *ctx, struct buf *ret);

/*
 * Listens at where (daemon/listen_at.h). l and ctx must outlive it. Returns 0,
 * an error of listen_at_parse, -EADDRINUSE, or another -errno.
 */
must_check int metrics_new(struct loop *l, const char *where, metrics_fn fn,
			   void *ctx, struct metrics **ret);
/* Takes NULL. */
void metrics_free(struct metrics *m);

/*
 * metrics_text.c: if the configuration says where, listens there, with the
 * figures of the broker; on a fault prints one line.
 */
must_check int metrics_start(struct broker *b);

#endif
