/* What a peer of the daemon's socket may see of the figures (control/rights.h). */
#ifndef DAEMON_BROKER_REPORT_VIEWER_H
#define DAEMON_BROKER_REPORT_VIEWER_H

#include <stdbool.h>

#include "daemon/broker/targets/instance.h"
#include "daemon/process/peer.h"

/* True if the viewer may see the figures of this process: all, or those of its own user. */
static inline bool viewer_sees(const struct peer *viewer, const struct instance *i)
{
	return viewer->sees_all || viewer->uid == i->uid;
}

#endif
