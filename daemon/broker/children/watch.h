/* The heartbeat of capture, which shows whether it gets on. */
#ifndef DAEMON_BROKER_CHILDREN_WATCH_H
#define DAEMON_BROKER_CHILDREN_WATCH_H

#include <stdbool.h>

#include "lib/base/util.h"

struct broker;

/* Kills a capture that shows no heartbeat, and leaves out who is to blame. */
void watch_heartbeat(struct broker *b);
/* True if it gets on with what it was told to do: see daemon/broker/children/patience.h. */
must_check bool watch_works(const struct broker *b);

#endif
