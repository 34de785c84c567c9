/*
 * Watches the heartbeat of capture, which shows whether capture gets on. A capture that
 * hangs is killed and replaced; the target whose memory it was reading is left out.
 */
#ifndef DAEMON_BROKER_CHILDREN_WATCH_H
#define DAEMON_BROKER_CHILDREN_WATCH_H

#include <stdbool.h>

#include "daemon/broker/children/child.h"
#include "lib/base/util.h"

/*
 * At every turn. True if capture shows no heartbeat and is to be killed (watch_kill):
 * *ret_target is the id of the target that makes it hang, 0 if no target does.
 */
must_check bool watch_is_hung(struct children *c, uint32_t *ret_target);
void watch_kill(struct children *c);

/* True if capture gets on with what it was told to do: patience.h. */
must_check bool watch_works(const struct children *c);

#endif
