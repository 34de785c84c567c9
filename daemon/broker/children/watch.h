/*
 * Watches whether child processes make progress:
 * - The heartbeat of capture is a time that capture renews while it makes progress. A capture that
 *   hangs is killed and replaced. The target whose memory capture was reading is not profiled any
 *   more.
 * - struct idle_timeout is a timeout for processes that the broker waits for when the broker ends
 *   or is suspended. The timeout ends IDLE_TIMEOUT_NS after the last progress of the processes, at
 *   the latest IDLE_TIMEOUT_MAX_NS after idle_timeout_start(). A process that is runnable but gets
 *   no processor, as on a machine whose host is busy, counts as one that makes progress.
 *
 * daemon/broker/deadlines.h lists all deadlines of child processes.
 */
#ifndef DAEMON_BROKER_CHILDREN_WATCH_H
#define DAEMON_BROKER_CHILDREN_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/broker/children/child.h"
#include "lib/base/util.h"

/*
 * Returns true if capture hangs, that is, if
 * - its heartbeat is HEARTBEAT_DEAD_MS old, and capture waits for a target's memory, or a signal or
 *   a debugger has stopped it;
 * - or its heartbeat is 10 s old.
 *
 * Then sets *ret_target to the id of the target whose memory capture waits for, or to 0 if no
 * target is the cause. After true, the caller passes an id other than 0 to totals_capture_died(),
 * and then calls watch_kill_capture().
 *
 * If the heartbeat is HEARTBEAT_DEAD_MS or more in the future, kills capture and returns false: an
 * honest capture writes no such time. Called in every turn of the event loop.
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

/*
 * Returns true if capture makes progress or is runnable: for the argument busy of
 * idle_timeout_end_ns().
 */
must_check bool watch_capture_works(const struct children *c);

#define IDLE_TIMEOUT_NS (3 * NS_PER_SEC)
/* Less than the 90 s after which a service manager kills the daemon. */
#define IDLE_TIMEOUT_MAX_NS (30 * NS_PER_SEC)

struct idle_timeout {
	uint64_t began_ns;
	uint64_t progress_ns; /* when the process was last seen to make progress */
};

/* Starts the timeout. now_ns: any clock; the same one for idle_timeout_end_ns(). */
void idle_timeout_start(struct idle_timeout *p, uint64_t now_ns);

/*
 * Returns the time at which the timeout ends. Call it several times within IDLE_TIMEOUT_NS,
 * since progress moves the end. busy: true if a process that the broker waits for makes progress
 * or is runnable. now_ns: the clock of idle_timeout_start().
 */
uint64_t idle_timeout_end_ns(struct idle_timeout *p, uint64_t now_ns, bool busy);

#endif
