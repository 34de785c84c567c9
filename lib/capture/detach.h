/*
 * Detaching from targets: from one (capture_remove), or from all at the end.
 *
 * Capture does not stop a thread for PTRACE_DETACH, which needs a stopped one: a stop would take a
 * blocked thread out of its system call. Instead the tracing thread ends: the kernel then detaches
 * all tracees without a stop. So to detach from one target, capture detaches from all, and a new
 * thread of the same process attaches to the others again. Capture uses PTRACE_DETACH only where a
 * thread is stopped anyway: in a crash (crash.h), at an exec (held_exec.h), at the death of a
 * leader, and at the first stop of a child if children are not followed (capture_options.born). To
 * detach from one target:
 *
 * 1. capture_remove, and ticks as before until capture_prepare_detach returns true.
 * 2. No ticks, but capture_reap, capture_prepare_detach and capture_settle in turn, until
 *    capture_settle returns true. If capture_prepare_detach returns false before that, back to 1.
 * 3. The end of the tracing thread.
 * 4. In a new tracing thread capture_attach_again, at once.
 *
 * To detach from all: capture_settle and capture_finish, each until it returns true, then the end
 * of the tracing thread.
 *
 * A resumed call is a system call that a stop interrupted and that capture has made the thread
 * enter again (restart/resume.h). A resumed call is at risk while the end of the tracer would make
 * it fail, or return less. So capture first waits for calls at risk to end, or interrupts them. A
 * partial transfer is a resumed call that has moved some of its bytes, but not all; it is at risk.
 * A thread is settled if it has no interrupt under way and is in no call at risk.
 */
#ifndef LIB_CAPTURE_DETACH_H
#define LIB_CAPTURE_DETACH_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

struct capture;
struct traced_process;

/*
 * Marks the target for detaching. Its threads are no longer sampled; the other targets still are.
 * With capture_options.perf, nothing is traced, and the target ends at once: the next tick reports
 * CAPTURE_GONE. Returns 0, also if the target is marked already; -ENOENT if there is no target of
 * this number, or if the target has ended.
 */
must_check int capture_remove(struct capture *c, uint32_t target);

/* Returns true if capture_remove() was called for a target that capture still traces. */
bool capture_is_detaching(const struct capture *c);

/*
 * Returns true if step 2 may begin or go on. Returns false if it may not, or if all targets that
 * were to be detached have ended. Does not block. Call it several times a second while
 * capture_is_detaching() is true, and in step 2 after each capture_reap.
 *
 * Step 2 may begin if all threads of the detaching targets are settled; the function interrupts
 * their partial transfers as capture_settle does, but never those of the other targets. For the
 * other targets one of these conditions must hold as well:
 * - No thread is in a call at risk.
 * - All threads in calls at risk have been blocked for 2 s.
 * - A trial is under way. A call begins a trial if the last trial began 2 s ago or earlier. In a
 *   trial the function returns true for 250 ms, so that the caller makes no ticks. Reason: while
 *   ticks interrupt many threads, some thread is always in a call at risk; without ticks these
 *   calls can end. If some have not ended after 250 ms, the function returns false: ticks go on.
 *
 * Whatever the threads do, step 2 may begin 20 s after the first call for a detaching target; after
 * 10 s if all threads of the detaching targets are settled.
 */
must_check bool capture_prepare_detach(struct capture *c);

/*
 * Returns true after a crash in which a thread did not stop in time, so that only the end of the
 * tracing thread detaches from the process (crash.h). The caller must then end the tracing thread
 * at once, and step 4 follows. Until then the caller must not wait for any tracee: tracee_wait()
 * leaves stops in the kernel, so it would return the held stop of the crashed thread again and
 * again.
 */
must_check bool capture_must_detach_now(const struct capture *c);

/* For reap.h: makes capture_must_detach_now() true until capture has attached again. */
void detach_demand_now(struct capture *c);

/*
 * For reap.h, before the tracing thread ends because of a crash of the target `but`: interrupts the
 * partial transfers of all other targets, so that they return what they have so far. From the first
 * call until capture_attach_again() no call of any target is resumed. Returns false while a thread
 * of these targets has an interrupt under way, is entering a resumed call, or is in a partial
 * transfer.
 */
must_check bool detach_others_are_settled(struct capture *c, const struct traced_process *but);

/*
 * Returns true if all threads are settled. Call it after the last tick, after each further stop,
 * and several times a second. When all unsettled threads have been blocked for 2 s, and at the
 * latest 10 s after the first call, interrupts the partial transfers, so that they return what they
 * have so far. From then on waits only for these, and for threads that are entering a resumed call.
 * Returns true in any case when all unsettled threads have been blocked for 4 s, or 20 s after the
 * first call.
 */
must_check bool capture_settle(struct capture *c);

/*
 * Ends all targets. Samples under way count as missed, and each target gets its RECORD_END and is
 * reported as CAPTURE_GONE. Returns false if a ring had no room for a RECORD_END. Then call it
 * again after the reader has freed room.
 */
must_check bool capture_finish(struct capture *c);

/*
 * Called in the new tracing thread, once. Ends the targets that were removed (CAPTURE_GONE) and
 * attaches to the others, which takes about 5 us a thread. An end or an exec that happened in
 * between is reported as usual; a target that another tracer has taken, as CAPTURE_OTHER_TRACER.
 */
void capture_attach_again(struct capture *c);

#endif
