/*
 * Crashes of profiled processes. Before a thread runs its handler of a crash signal, capture
 * detaches from the process (lib/capture/crash.h), so that a crash reporter can trace it. This
 * module decides when capture attaches to the process again, for the same run of the profiler, if
 * the process survives; and which signals no longer count as crashes, because the process handles
 * them in ordinary work: the JVM's null checks, Go's nil panics, traps of WebAssembly.
 */
#ifndef DAEMON_BROKER_TARGETS_CRASH_H
#define DAEMON_BROKER_TARGETS_CRASH_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/broker/targets/targets.h"
#include "daemon/msg/msg_capture.h"

/*
 * The process is looked at CRASH_LOOK_NS after the crash, then after twice as long each time, up to
 * CRASH_LOOK_MAX_NS. A handler that does not block its signal (SA_NODEFER) cannot be seen to run:
 * it is given CRASH_UNSEEN_NS.
 */
#define CRASH_LOOK_NS	  (2 * NS_PER_SEC)
#define CRASH_LOOK_MAX_NS (32 * NS_PER_SEC)
#define CRASH_UNSEEN_NS	  (30 * NS_PER_SEC)

/*
 * A signal no longer counts after two crashes within CRASH_AGAIN_NS that the process has survived,
 * or after CRASH_SURVIVED_MAX in total, until the process executes another program.
 */
#define CRASH_AGAIN_NS	   (60 * NS_PER_SEC)
#define CRASH_SURVIVED_MAX 5

/* Handles TARGET_CRASHED: the target waits until the crash is over. Logs a line. */
void crash_on_left(struct targets *ts, struct run *run, const struct msg_target_state *m);

/* Handles TARGET_CRASHES_TRACED: counts it and logs a line. */
void crash_on_traced(struct run *run, const struct msg_target_state *m);

/*
 * Called when run->retry_ns has come. Returns true if capture may attach again: no crash is under
 * way, or no other process traces a thread, and the crashed thread has left its handler, in which
 * the signal is blocked, or has exited. Returns false, with run->retry_ns set, if the process is to
 * be looked at later.
 */
must_check bool crash_is_over(struct targets *ts, struct run *run, uint64_t now_ns);

/* Capture has attached again. */
void crash_attached(struct run *run);

/* The process has executed a program: no signal is known to be ordinary work for it. */
void crash_forget(struct instance *i);

/* Returns the signals that do not count, for msg_target_add.ignored_crashes. */
uint32_t crash_ignored(const struct instance *i);

/*
 * Returns true if pid has crashed and is being reported on: a process that it starts now may be its
 * crash reporter.
 */
bool crash_is_reported(struct targets *ts, int32_t pid);

#endif
