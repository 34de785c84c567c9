/*
 * Watches the heartbeat of capture, a time that capture renews while it makes progress. A
 * capture that hangs is killed and replaced. The target whose memory capture was reading is not
 * profiled any more.
 */
#ifndef DAEMON_BROKER_CHILDREN_WATCH_H
#define DAEMON_BROKER_CHILDREN_WATCH_H

#include <stdbool.h>

#include "daemon/broker/children/child.h"
#include "lib/base/util.h"

/*
 * To be called at every turn. Returns true if capture shows no heartbeat; then the caller calls
 * watch_kill(). *ret_target: the id of the target at which capture hangs; 0: no target is the
 * cause.
 */
must_check bool watch_is_hung(struct children *c, uint32_t *ret_target);
/* Kills capture and logs why; it is restarted when it has died. */
void watch_kill(struct children *c);

/* Returns true if capture makes progress or is runnable: the argument busy of patience_end_ns(). */
must_check bool watch_works(const struct children *c);

#endif
