/*
 * The rights of peers on the daemon's socket. daemon/process/peer.h finds out what a peer is.
 * - Operators may make every request. They are root of the daemon's namespaces, the daemon's own
 *   user, and the members of the group sentry-profd.
 * - Every user may start, stop, attach, detach, release and record the user's own processes. The
 *   setting user_attach can forbid attach and record (attach_request.h).
 * - Every user may read the status and the metrics: the list of all processes, which ps(1) and the
 *   configuration show as well, and the statistics of the user's own processes
 *   (instance_is_seen_by()).
 * - Viewers are the members of the group sentry-profd-view. They have the rights of every user, but
 *   read the whole status and all metrics, as operators do.
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
 * Returns true if process pid is a process of the peer's user that the peer may trace
 * (daemon/process/may_trace.h), and that is not mixed: it has no rights that its user lacks
 * (daemon/process/owner.h).
 */
bool rights_is_own(const struct peer *peer, int32_t pid);

/*
 * Returns true if i is the process of the peer itself and the connection speaks for that process
 * (peer_speaks()). The peer may then start, stop, detach and release itself and read its profiler
 * id. This needs no right to trace the process. So a service whose capabilities make
 * rights_is_own() false can still control itself.
 */
bool rights_is_itself(const struct peer *peer, const struct instance *i);

/*
 * Returns true if the peer may start, stop, attach, detach, release and record i, and read its
 * profiler id: the peer is an operator, or rights_is_own() is true for the process of i. In the
 * second case, if i has a run, i->owner.uid must be the peer's uid, too: the run may be that of
 * another user, as long as the broker has not noticed a change of the process's uid (owners.h).
 */
bool rights_may_control(const struct peer *peer, const struct instance *i);

/*
 * Returns the instance of process pid, if rights_is_itself() or rights_may_control() is true for
 * it. Otherwise returns NULL and sets the result of *ret:
 * - PROTOCOL_DENIED: the process has an instance, and both functions return false;
 * - PROTOCOL_NO_TARGET: the process lives and has no instance, whosever it is;
 * - PROTOCOL_NO_PROCESS: the process has ended, and has no instance.
 */
struct instance *rights_find_instance(struct targets *ts, const struct peer *peer, int32_t pid,
				      struct control_answer *ret);

#endif
