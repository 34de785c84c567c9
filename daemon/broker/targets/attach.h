/*
 * Starts and stops runs of the profiler (run.h): opens the session in unwind, adds the process to
 * capture, and handles capture's reports. No function waits. While another tracer traces the
 * process, the run stays in the phase RUN_WAITING, and attach_check() checks again each second.
 */
#ifndef DAEMON_BROKER_TARGETS_ATTACH_H
#define DAEMON_BROKER_TARGETS_ATTACH_H

#include "daemon/broker/targets/targets.h"

#include "daemon/msg/msg_capture.h"

/*
 * Starts a run. Also called when a new capture process is ready, for all runs. Capture attaches as
 * soon as unwind has opened the session and no other tracer is attached. If no unwind process can
 * be had, sets run->attach_error and closes the run. Does nothing unless run_is_open().
 */
void attach_start(struct targets *ts, struct run *run);

/*
 * Stops a run: capture detaches, unwind makes the last chunk, and the run is closed.
 * Returns at once; the run is still in use until run_is_over(). Does nothing unless run_is_open().
 */
void attach_stop(struct targets *ts, struct run *run);

/*
 * Handles MSG_TARGET_STATE, capture's report about a target. If the message names an unknown target
 * or state, ends capture (child_fail).
 */
void attach_on_state(struct targets *ts, const struct msg_target_state *m);

/*
 * Call it at every turn of the broker, after instances_check(). Sends the messages to unwind and
 * capture that are possible now, and closes runs whose process has ended without a report.
 */
void attach_check(struct targets *ts);

/* Closes all runs (run_close), at the end of the broker. Call it after capture has ended. */
void attach_close_all(struct targets *ts);

/*
 * Retires a run for which run_is_over() is true: adds its totals to the instance and tells unwind
 * to forget the session. No function finds the run any more; targets_sweep() frees its place.
 */
void attach_retire(struct run *run);

#endif
