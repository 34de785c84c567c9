/*
 * Watches whether child processes make progress:
 * - The heartbeat of capture is a time in shared memory that capture renews while it makes
 *   progress. A capture that hangs is killed and replaced. If capture hung while it read the memory
 *   of a target, that target is not profiled any more.
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
 * Returns true if capture hangs. This is so if its heartbeat is
 * - 1 s old (HEARTBEAT_DEAD_MS), and capture waits for the memory of a target;
 * - 1 s old, and a signal or a debugger has stopped capture;
 * - or 10 s old, for whatever reason.
 *
 * An old heartbeat counts only if eight checks, at least 50 ms apart, found it unchanged. Reason:
 * if the whole machine stood still, so did capture. Call this function in every turn of the event
 * loop.
 *
 * If the result is true, *ret_target is the id of the target whose memory capture is accessing; 0:
 * there is none, or a signal or a debugger has stopped capture. The caller passes an id other than
 * 0 to totals_capture_died(), which ends the profiling of that target. Then, in both cases, the
 * caller calls watch_kill_capture().
 *
 * If the heartbeat is 1 s or more in the future, kills capture and returns false: an honest capture
 * writes no such time. Returns false if capture does not run, was killed, or has sent
 * MSG_CAPTURE_DONE at the end of the broker.
 */
must_check bool watch_capture_hangs(struct children *c, uint32_t *ret_target);
/*
 * Kills capture for its old heartbeat (CHILD_HUNG) and logs that. A new capture is started when the
 * killed one has ended.
 */
void watch_kill_capture(struct children *c);

/*
 * Returns the time of the newest heartbeat, by clock_mono_ns(). If that time is in the future,
 * returns the present time, because a capture that was taken over can write any time. Call this
 * function only after capture was started.
 */
uint64_t watch_beat_ns(const struct children *c);

/*
 * Returns true if capture runs and makes progress, or has a runnable thread. The caller passes the
 * result to idle_timeout_end_ns() as busy.
 */
must_check bool watch_capture_works(const struct children *c);

#define IDLE_TIMEOUT_NS (3 * NS_PER_SEC)
/* Less than the 90 s after which a service manager kills the daemon. */
#define IDLE_TIMEOUT_MAX_NS (30 * NS_PER_SEC)

struct idle_timeout {
	uint64_t began_ns;
	uint64_t progress_ns; /* when busy was last true */
};

/* Starts the timeout. now_ns: any clock; the same one for idle_timeout_end_ns(). */
void idle_timeout_start(struct idle_timeout *p, uint64_t now_ns);

/*
 * Returns the time at which the timeout ends, as known at now_ns, by the clock of
 * idle_timeout_start(). busy: a process that the broker waits for makes progress or is runnable;
 * this moves the end. So call it several times within IDLE_TIMEOUT_NS.
 */
uint64_t idle_timeout_end_ns(struct idle_timeout *p, uint64_t now_ns, bool busy);

#endif
