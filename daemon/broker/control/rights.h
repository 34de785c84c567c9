/*
 * The rights of peers on the daemon's socket. Operators (root of the daemon's namespaces, the
 * daemon's own user, members of the group sentry-profd) may make every request. Every user may
 * start, stop, attach, detach and record the user's own processes, as far as user_attach in the
 * configuration permits (adopt.h), and may read the status and the
 * metrics: the list of processes, which ps(1) and the configuration show as well, with the
 * statistics of the user's own processes only (report/reader.h). Viewers (members of the group
 * sentry-profd-view) are such users, but read the whole status and all metrics, as operators do.
 * daemon/process/peer.h finds out what a peer is.
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
 * Returns true if process pid, which runs as uid, is a process of the peer's user that the peer may
 * trace (daemon/process/may_trace.h), or the peer itself. A process whose files in /proc do not
 * belong to uid is not the user's: it has changed its credentials, or runs a file that the user may
 * not read.
 */
bool rights_is_own(const struct peer *peer, int32_t pid, uint32_t uid);

/*
 * Returns true if the peer may start, stop, attach, detach and record i, and read its profiler
 * id: the peer is an operator, or i is a process of the peer's user.
 */
bool rights_may_control(const struct peer *peer, const struct instance *i);

/*
 * Returns the instance of process pid, if rights_may_control() is true for it. If not, or if
 * there is no such process or instance, returns NULL and sets the result of *ret.
 */
struct instance *rights_find_instance(struct targets *ts, const struct peer *peer, int32_t pid,
				      struct control_answer *ret);

#endif
