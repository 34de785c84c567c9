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
 * target's memory or was stopped by a signal; or its heartbeat is 10 s old. Then *ret_target is the
 * id of the target whose memory capture waits for, or 0 if no target is the cause. After true, the
 * caller passes an id that is not 0 to targets_capture_died(), and then calls watch_kill_capture().
 *
 * If the heartbeat is in the future, this function kills capture itself and returns false. The
 * broker calls this function in every turn of the event loop.
 */
must_check bool watch_capture_hangs(struct children *c, uint32_t *ret_target);
/* Kills capture and logs why; it is restarted when it has died. */
void watch_kill_capture(struct children *c);

/*
 * Returns the time of the newest heartbeat, or the present time if the heartbeat is later: an
 * attacker who has taken over capture can write any time. Call this function only after capture was
 * started.
 */
uint64_t watch_beat_ns(const struct children *c);

/* Returns true if capture makes progress or is runnable: the argument busy of patience_end_ns(). */
must_check bool watch_capture_works(const struct children *c);

#endif
