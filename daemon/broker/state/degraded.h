/*
 * The list of the degraded states, in which the daemon works with a restriction: for each kind
 * (degraded_kind.h) whether it is present, since when, and the reason. status, metrics, `doctor`
 * and the service manager show the list.
 *
 * Code that notices the begin or the end of such a state calls degraded_begin() or degraded_end(),
 * and logs nothing itself: these functions log a line at each change. For states that begin or end
 * without an event, report/health.h checks once a second.
 */
#ifndef DAEMON_BROKER_STATE_DEGRADED_H
#define DAEMON_BROKER_STATE_DEGRADED_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/common/degraded_kind.h"
#include "lib/base/util.h"

/* Bytes of a reason, the NUL included; a longer one is cut off. */
#define DEGRADED_REASON_MAX 512

struct degraded_state {
	uint64_t since_ns; /* by clock_mono_ns(); 0: not present */
	char reason[DEGRADED_REASON_MAX];
};

/* All zeros: not degraded. */
struct degraded {
	struct degraded_state v[DEGRADED_N];
};

/*
 * Adds the state kind to the list, or, if the state is present, sets its reason. format gives the
 * reason, a clause such as "its directory was removed", or "" for none. Logs a line if the state
 * begins or its reason has changed. So the reason must not have figures that change all the time.
 * If the state is present with the same reason, has no effect.
 */
void degraded_begin(struct degraded *d, enum degraded_kind kind, const char *format, ...)
	printf_like(3, 4);
/* Removes the state kind from the list. Logs a line if it was present. */
void degraded_end(struct degraded *d, enum degraded_kind kind);

/*
 * Iterates over the present states, the gravest first: returns the first present state that is kind
 * or comes after kind in the enum, or DEGRADED_N. So kind 0 gives the gravest state; for the next
 * one, pass the last result plus 1.
 */
enum degraded_kind degraded_next(const struct degraded *d, enum degraded_kind kind);
/* Returns how many states are present. */
size_t degraded_count(const struct degraded *d);

#endif
