/*
 * Crashes of profiled processes. Before a thread runs its handler of a crash signal, capture
 * detaches from the process (lib/capture/crash.h), so that a crash reporter can trace it. If the
 * process survives, this module decides when capture attaches again, for the same run of the
 * profiler (run.h). It also decides which signals no longer count as crashes, because the process
 * handles them in ordinary work: null checks of the JVM, nil panics of Go, traps of WebAssembly.
 */
#ifndef DAEMON_BROKER_TARGETS_CRASH_H
#define DAEMON_BROKER_TARGETS_CRASH_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/broker/targets/targets.h"
#include "daemon/msg/msg_capture.h"

/*
 * The broker checks the process CRASH_LOOK_NS after the crash, and then after delays that double up
 * to CRASH_LOOK_MAX_NS. While the handler runs, the thread usually blocks the signal: this shows in
 * /proc. If the handler does not block the signal (SA_NODEFER), the broker assumes that the handler
 * runs for CRASH_UNSEEN_NS.
 */
#define CRASH_LOOK_NS	  (2 * NS_PER_SEC)
#define CRASH_LOOK_MAX_NS (32 * NS_PER_SEC)
#define CRASH_UNSEEN_NS	  (30 * NS_PER_SEC)

/*
 * A signal no longer counts as a crash once the process has survived two crashes by this signal
 * within CRASH_AGAIN_NS, or CRASH_SURVIVED_MAX in total. If the process executes another program,
 * the signal counts again.
 */
#define CRASH_AGAIN_NS	   (60 * NS_PER_SEC)
#define CRASH_SURVIVED_MAX 5

/*
 * Handles TARGET_CRASHED for an open run: the run waits until the crash is over, and a line is
 * logged. If m has no thread or no known signal, ends capture (child_fail).
 */
void crash_on_left(struct targets *ts, struct run *run, const struct msg_target_state *m);

/* Handles TARGET_CRASHES_TRACED: capture could not detach. Counts the crash and logs a line. */
void crash_on_traced(struct run *run, const struct msg_target_state *m);

/*
 * Call it when run->retry_ns has come. Returns true if run has no crash or its crash is over. A
 * crash is over when the crashed thread has left its handler or has exited, and no other process
 * than capture traces a thread of the process. Otherwise returns false, and sets run->retry_ns to
 * the time of the next check. now_ns: CLOCK_MONOTONIC.
 */
must_check bool crash_is_over(struct targets *ts, struct run *run, uint64_t now_ns);

/* Ends the crash of run, if there is one: capture has attached again. */
void crash_attached(struct run *run);

/* Call it when the process has executed a program: all signals count as crashes again. */
void crash_forget(struct instance *i);

/* Returns the signals that do not count (bit n - 1: signal n); all if on_crash is stay. */
uint32_t crash_ignored(const struct instance *i);

/*
 * Returns true if process pid has a run whose crash is not over. A process that it starts now may
 * be its crash reporter, so capture does not attach to that process.
 */
bool crash_is_reported(struct targets *ts, int32_t pid);

#endif
