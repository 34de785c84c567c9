/*
 * The rights of peers of the daemon's socket. Operators (root, the daemon's own user, the group
 * sentry-profd) may do everything. Viewers (the group sentry-profd-view) see what operators see,
 * and may do what any user may. A user may start, stop, attach and record processes of their
 * own. Everybody may read the status and the metrics, without the figures of other users'
 * processes; what is left then is what ps(1) and the configuration show.
 */
#ifndef DAEMON_BROKER_CONTROL_RIGHTS_H
#define DAEMON_BROKER_CONTROL_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/broker/control/control.h"
#include "daemon/process/peer.h"

struct targets;
struct instance;

/*
 * True if process pid, which runs as uid, is the peer's own. A process whose files in /proc do
 * not belong to its user is not: it has changed its credentials, or runs a file that the user
 * may not read.
 */
bool rights_own(const struct peer *is, int32_t pid, uint32_t uid);

/* True if the peer may start and stop profiling of i, and ask for its profiler id. */
bool rights_may(const struct peer *is, const struct instance *i);

/* Returns the instance of pid if rights_may() holds; NULL: *ret says why not. */
struct instance *rights_find(struct targets *ts, const struct peer *is, int32_t pid,
			     struct control_answer *ret);

#endif
