/*
 * Starts and stops runs of the profiler (run.h), as instances.h decides. For a run, an unwind
 * process opens a session and capture attaches to the process. This module sends the messages for
 * that, and handles capture's reports. No function waits. While a debugger, for example, traces the
 * process, capture cannot attach: the run stays in the phase RUN_WAITING, and attach_check() tries
 * again each second.
 */
#ifndef DAEMON_BROKER_TARGETS_ATTACH_H
#define DAEMON_BROKER_TARGETS_ATTACH_H

#include "daemon/broker/targets/targets.h"

#include "daemon/msg/msg_capture.h"

/*
 * Starts a run that targets_open_run() has made. Call it again for every run when a new capture
 * process was started, which is to attach to the process again. This call or a later
 * attach_check() sends the messages. If children_get_unwind() fails, sets run->attach_error to a
 * positive errno and closes the run. Does nothing unless run_is_open().
 */
void attach_start(struct targets *ts, struct run *run);

/*
 * Begins to stop a run. Later capture detaches, unwind makes the last chunk, and the run is closed.
 * If capture does not know the target, the run is closed at once. The run stays valid until
 * instances_check() finds that run_is_over() and retires it. Does nothing unless run_is_open().
 */
void attach_stop(struct targets *ts, struct run *run);

/*
 * Handles MSG_TARGET_STATE, capture's report about a target. If the message names an unknown target
 * or state, kills capture (child_fail).
 */
void attach_on_state(struct targets *ts, const struct msg_target_state *m);

/*
 * Call it at every turn of the broker, after instances_check(). Asks unwind to open the sessions of
 * new runs. When unwind has opened a session, asks capture to attach to the process. If a process
 * has ended that capture does not trace, closes its run, since capture does not report that end.
 * Does nothing unless state_is_profiling().
 */
void attach_check(struct targets *ts);

/* Closes all runs (run_close), at the end of the broker. Call it after capture has ended. */
void attach_close_all(struct targets *ts);

/*
 * Retires a run for which run_is_over() is true: adds its totals to the instance and tells unwind
 * to forget the session. From then on targets_run() and FOR_EACH_RUN() skip the run, and
 * targets_sweep() frees its place in the table.
 */
void attach_retire(struct run *run);

#endif
