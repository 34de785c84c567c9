/*
 * Who may do what over the daemon's socket: root, the daemon's own user and the
 * group sentry-profd everything; a user what is about processes of his own;
 * the group sentry-profd-view sees what operators see, and may do no more than
 * a user. Everybody may see the status and the metrics, in which others'
 * figures are left out: what is in it then, ps(1) and the configuration's wish,
 * is no secret where /proc is open.
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
 * Is process pid, which runs as uid, the peer's own? One whose files in /proc
 * are not its user's is not: it has changed its rights, or runs a file that he
 * may not read.
 */
bool rights_own(const struct peer *is, int32_t pid, uint32_t uid);

/* May the peer start, stop, and ask for the profiler's id? */
bool rights_may(const struct peer *is, const struct instance *i);

/* The instance, if the peer may; NULL: *ret says why not. */
struct instance *rights_find(struct targets *ts, const struct peer *is, int32_t pid,
			     struct control_answer *ret);

#endif
