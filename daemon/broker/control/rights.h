/*
 * The rights of peers on the daemon's socket. Operators (root, the daemon's own user, the group
 * sentry-profd) may do everything. Viewers (the group sentry-profd-view) may read what operators
 * read, and otherwise do what any user may. A user may start, stop, attach and record the user's
 * own processes. Every user may read the status and the metrics, without the statistics of other
 * users' processes; the rest is what ps(1) and the configuration show.
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
 * Returns true if process pid, which runs as uid, is the peer's own. A process whose files in
 * /proc do not belong to its user is not: it has changed its credentials, or runs a file that
 * the user may not read.
 */
bool rights_is_own(const struct peer *peer, int32_t pid, uint32_t uid);

/* Returns true if the peer may start and stop profiling of i, and read its profiler id. */
bool rights_may_control(const struct peer *peer, const struct instance *i);

/* Returns the instance of pid if rights_may_control() holds. NULL: *ret has the reason. */
struct instance *rights_find_instance(struct targets *ts, const struct peer *peer, int32_t pid,
				      struct control_answer *ret);

#endif
