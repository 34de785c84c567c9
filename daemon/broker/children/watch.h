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
 * Returns true if capture hangs: its heartbeat is HEARTBEAT_DEAD_MS old, and capture waits for a
 * target's memory or was stopped by a signal; or its heartbeat is 10 s old. *ret_target: the id of
 * the target whose memory capture waits for; 0: no target is the cause. The caller passes an id
 * that is not 0 to targets_capture_died(), and then calls watch_kill_capture(). Called at every
 * turn. Kills a capture whose heartbeat is in the future, and returns false.
 */
must_check bool watch_capture_hangs(struct children *c, uint32_t *ret_target);
/* Kills capture and logs why; it is restarted when it has died. */
void watch_kill_capture(struct children *c);

/*
 * Returns the time of the newest heartbeat, not later than now: a process that has taken over
 * capture can write any time. capture has been started.
 */
uint64_t watch_beat_ns(const struct children *c);

/* Returns true if capture makes progress or is runnable: the argument busy of patience_end_ns(). */
must_check bool watch_capture_works(const struct children *c);

#endif
