/*
 * Starts and stops runs of the profiler: opens the session in unwind, adds the process to capture,
 * and handles capture's reports. If another tracer has attached to the process before, waits until
 * it detaches.
 */
#ifndef DAEMON_BROKER_TARGETS_ATTACH_H
#define DAEMON_BROKER_TARGETS_ATTACH_H

#include "daemon/broker/targets/targets.h"

#include "daemon/msg/msg_capture.h"

/*
 * Starts a run, and starts it again after capture was replaced. Capture attaches as soon as
 * unwind has opened the session and no other tracer is attached. If there is no unwind process
 * for it, the run is closed.
 */
void attach_start(struct targets *ts, struct run *run);

/*
 * Stops a run: capture detaches, unwind makes the last chunk, and the run is closed.
 * Returns at once; the run is still in use until run_is_over().
 */
void attach_stop(struct targets *ts, struct run *run);

/* Handles MSG_TARGET_STATE: capture has attached, could not attach, or reports exec or the end. */
void attach_on_state(struct targets *ts, const struct msg_target_state *m);

/*
 * To be called at every turn: sends the messages to unwind and capture that are possible now. So
 * capture also attaches to processes that another tracer has left.
 */
void attach_check(struct targets *ts);

/* Calls run_close() for all runs. */
void attach_close_all(struct targets *ts);

/*
 * Retires a run that is over: adds its totals to the instance and tells unwind to forget the
 * session. No function finds the run any more.
 */
void attach_retire(struct run *run);

#endif
