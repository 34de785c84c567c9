/*
 * Crashes of profiled processes. Before a thread runs its handler of a crash signal, capture
 * detaches from the process (lib/capture/crash.h), so that a crash reporter can trace the process.
 * If the process survives, this module decides when capture attaches again, for the same run of the
 * profiler (run.h). Some programs use these signals in ordinary work: null checks of the JVM, nil
 * panics of Go, traps of WebAssembly. So this module also decides when a signal no longer counts as
 * a crash of the process.
 */
#ifndef DAEMON_BROKER_TARGETS_CRASH_H
#define DAEMON_BROKER_TARGETS_CRASH_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/broker/targets/targets.h"
#include "daemon/msg/msg_capture.h"

/*
 * The broker first checks the process 2 s after the crash (CRASH_LOOK_NS). The delays between the
 * next checks are 4, 8, 16, 32, 32 s and so on (CRASH_LOOK_MAX_NS). The thread usually blocks the
 * signal while its handler runs, which /proc shows. If the thread does not block the signal
 * (SA_NODEFER), the broker assumes that the handler runs for CRASH_UNSEEN_NS.
 */
#define CRASH_LOOK_NS	  (2 * NS_PER_SEC)
#define CRASH_LOOK_MAX_NS (32 * NS_PER_SEC)
#define CRASH_UNSEEN_NS	  (30 * NS_PER_SEC)

/*
 * A signal no longer counts as a crash of the process once the process has survived two crashes by
 * this signal that began within CRASH_AGAIN_NS of each other, or CRASH_SURVIVED_MAX crashes by this
 * signal in total. If the process executes another program, the signal counts again.
 */
#define CRASH_AGAIN_NS	   (60 * NS_PER_SEC)
#define CRASH_SURVIVED_MAX 5

/*
 * Call it when capture has reported by m (TARGET_CRASHED) that it has detached from the process of
 * an open run. Sets run->phase to RUN_WAITING and run->retry_ns to the time of the first check, and
 * logs a line. If m has no thread or no known signal, ends capture instead (child_fail): a working
 * capture sends both.
 */
void crash_on_left(struct targets *ts, struct run *run, const struct msg_target_state *m);

/*
 * Call it when capture has reported by m (TARGET_CRASHES_TRACED) that the process has crashed and
 * that capture could not detach. Counts the crash (instance.crashes.traced) and logs a line.
 */
void crash_on_traced(struct run *run, const struct msg_target_state *m);

/*
 * Call it when run->retry_ns has come. Returns true if run has no crash or its crash is over:
 * capture may attach. A crash is over when the crashed thread has left its handler or has exited,
 * and no process except capture traces a thread of the process. The first call that finds this
 * counts the crash as survived. Otherwise returns false, and sets run->retry_ns to the time of the
 * next check. now_ns: CLOCK_MONOTONIC.
 */
must_check bool crash_is_over(struct targets *ts, struct run *run, uint64_t now_ns);

/* Call it when capture has attached to the process of run: forgets the crash, if there was one. */
void crash_attached(struct run *run);

/* Call it when the process has executed a program: signals that it survived count again. */
void crash_forget(struct instance *i);

/*
 * Returns the signals that do not count as crashes of the process (bit n - 1: signal n). With
 * on_crash = stay in the configuration these are all signals.
 */
uint32_t crash_ignored(const struct instance *i);

/*
 * Returns true if process pid has a run whose crash is not over. A child that the process starts
 * now may be the crash reporter, so capture must not attach to the child.
 */
bool crash_is_reported(struct targets *ts, int32_t pid);

#endif
