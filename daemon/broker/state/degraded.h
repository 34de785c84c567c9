/*
 * The list of the states in which the daemon is degraded now: of each kind (degraded_kind.h)
 * whether it is present, since when, and the reason. status, metrics, `doctor` and the service
 * manager show the list.
 *
 * Whoever notices the begin or the end of such a state says so here, and logs nothing: these
 * functions log a line at each change. report/health.h does that for the states that nobody notices
 * by an event.
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
 * The state is present, for the reason of the format, a clause such as "its directory was removed",
 * or for none: "". Logs a line if the state begins or its reason has changed; so a reason has no
 * figures that change all the time. Call it as often as you like.
 */
void degraded_begin(struct degraded *d, enum degraded_kind kind, const char *format, ...)
	printf_like(3, 4);
/* The state is not present. Logs a line if it was. */
void degraded_end(struct degraded *d, enum degraded_kind kind);

/*
 * Returns the first state that is present, from kind on, or DEGRADED_N: the gravest one for kind
 * 0, and all of them in a loop.
 */
enum degraded_kind degraded_next(const struct degraded *d, enum degraded_kind kind);
/* Returns how many states are present. */
size_t degraded_count(const struct degraded *d);

#endif
