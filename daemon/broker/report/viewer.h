/*
 * Decides of which processes a viewer gets the statistics. A viewer is a peer of the daemon's
 * socket that asks for the status or the metrics (control/rights.h).
 */
#ifndef DAEMON_BROKER_REPORT_VIEWER_H
#define DAEMON_BROKER_REPORT_VIEWER_H

#include <stdbool.h>

#include "daemon/broker/targets/instance.h"
#include "daemon/process/peer.h"

/*
 * Returns true if the viewer may see the statistics of i: the viewer sees all processes (operators
 * and the group sentry-profd-view: daemon/process/peer.h), or i is a process of the viewer's user
 * that has no rights which this user lacks (plain: daemon/process/owner.h).
 */
static inline bool viewer_sees(const struct peer *viewer, const struct instance *i)
{
	return viewer->sees_all || owner_is_user(&i->owner, viewer->uid);
}

#endif
