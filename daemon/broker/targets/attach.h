/*
 * Starts and stops targets, the runs of the profiler: opens the session in unwind, adds the
 * target to capture, and handles capture's reports. If another tracer has attached to the
 * process before, waits until it detaches.
 */
#ifndef DAEMON_BROKER_TARGETS_ATTACH_H
#define DAEMON_BROKER_TARGETS_ATTACH_H

#include "daemon/broker/targets/targets.h"

#include "daemon/msg/msg_capture.h"

/*
 * Starts a target, and starts it again after capture was replaced. Capture attaches as soon as
 * unwind has opened the session and no other tracer is attached. If there is no unwind process
 * for it, the target is closed.
 */
void target_start(struct targets *ts, struct target *t);

/*
 * Stops a target: capture detaches, unwind makes the last chunk, and the target is closed.
 * Returns at once; the target is still in use until target_is_over().
 */
void target_stop(struct targets *ts, struct target *t);

/* Handles MSG_TARGET_STATE: capture has attached, could not attach, or reports exec or the end. */
void target_on_state(struct targets *ts, const struct msg_target_state *m);

/*
 * To be called at every turn: sends the messages to unwind and capture that are possible now. So
 * capture also attaches to processes that another tracer has left.
 */
void targets_check(struct targets *ts);

/* Calls target_close() for all targets. */
void targets_close(struct targets *ts);

/*
 * Retires a target that is over: adds its totals to the instance and tells unwind to forget the
 * session. No function finds the target any more.
 */
void target_retire(struct target *t);

#endif
