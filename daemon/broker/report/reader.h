/*
 * Decides of which processes a reader gets the statistics. A reader here is a peer of the daemon's
 * socket that asks for the status or the metrics (control/rights.h). control/reader.h is about
 * another reader, that of a recording.
 */
#ifndef DAEMON_BROKER_REPORT_READER_H
#define DAEMON_BROKER_REPORT_READER_H

#include <stdbool.h>

#include "daemon/broker/targets/instance.h"
#include "daemon/process/peer.h"

/*
 * Returns true if the reader may see the statistics of i: the reader sees all processes (operators
 * and the group sentry-profd-view: daemon/process/peer.h), or i is a process of the reader's user
 * that has no rights which this user lacks (plain: daemon/process/owner.h).
 */
static inline bool reader_sees(const struct peer *reader, const struct instance *i)
{
	return reader->sees_all || owner_is_user(&i->owner, reader->uid);
}

#endif
