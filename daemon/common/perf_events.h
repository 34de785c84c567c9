/*
 * Finds out whether this process may sample all processors by perf events, as `sampler = perf`
 * does: opens one perf event and closes it again. Used by the broker at its start, and by doctor.
 */
#ifndef DAEMON_COMMON_PERF_EVENTS_H
#define DAEMON_COMMON_PERF_EVENTS_H

#include "lib/base/util.h"

/* Returns 0 if this process may, or the negative errno of perf_event_open(2). */
must_check int perf_events_try(void);

/*
 * Returns what is missing and what the user can do, for a negative errno of perf_events_try(). The
 * text is a literal.
 */
const char *perf_events_fault(int error);

#endif
