/*
 * Decides of which processes a client of the daemon's socket may read the statistics
 * (control/rights.h).
 */
#ifndef DAEMON_BROKER_REPORT_VIEWER_H
#define DAEMON_BROKER_REPORT_VIEWER_H

#include <stdbool.h>

#include "daemon/broker/targets/instance.h"
#include "daemon/process/peer.h"

/*
 * Returns true if the viewer may see the statistics of all processes, or if the process runs as
 * the viewer's user.
 */
static inline bool viewer_sees(const struct peer *viewer, const struct instance *i)
{
	return viewer->sees_all || viewer->uid == i->uid;
}

#endif
