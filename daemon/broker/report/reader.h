/*
 * Decides which processes' statistics a reader gets. A reader is a peer of the daemon's socket
 * that asks for the status or the metrics (control/rights.h).
 */
#ifndef DAEMON_BROKER_REPORT_READER_H
#define DAEMON_BROKER_REPORT_READER_H

#include <stdbool.h>

#include "daemon/broker/targets/instance.h"
#include "daemon/process/peer.h"

/*
 * Returns true if the reader may see the statistics of all processes (operators and the group
 * sentry-profd-view: daemon/process/peer.h), or if the process of i is a plain one of the reader's
 * user (daemon/process/owner.h).
 */
static inline bool reader_sees(const struct peer *reader, const struct instance *i)
{
	return reader->sees_all || owner_is_user(&i->owner, reader->uid);
}

#endif
