/*
 * Detaching from targets: from one (capture_remove), or from all at the end.
 *
 * Capture does not stop a thread for PTRACE_DETACH, which needs a stopped one: a stop would take a
 * blocked thread out of its system call. Instead the tracing thread ends: the kernel then detaches
 * all tracees without a stop. So to detach from one target, capture detaches from all, and a new
 * thread of the same process attaches to the others again. Capture uses PTRACE_DETACH only where a
 * thread is stopped anyway: in a crash (crash.h), at an exec (held_exec.h), at the death of a
 * leader, and at the first stop of a child that it does not follow. To detach from one target:
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
 * Below, a resumed call is a system call that a stop interrupted and that capture has made the
 * thread enter again. If the tracer ended during the call, some resumed calls would fail or return
 * less (restart/resume.h). So capture first waits for such calls to end, or interrupts them.
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
 * Waits, without blocking, for the resumed calls that the end of the tracing thread would harm.
 * Returns true if step 2 may begin or go on. Call it several times a second while
 * capture_is_detaching() is true, and after each capture_reap while there are no ticks.
 * - Detaching targets: waits until their threads are settled (capture_settle). Interrupts such
 *   calls when none of the threads in them has run for 2 s, or after 10 s.
 * - Other targets: waits until no thread is in such a call, or no thread in such a call has run for
 *   2 s. Interrupts none. While ticks interrupt many threads, one of them is always in such a
 *   call. So once the detaching targets are settled, the function returns true for 250 ms of every
 *   2 s, whatever the others do. The caller is then in step 2, without ticks, and capture_settle
 *   succeeds if all calls end in that time. Otherwise false follows, and ticks go on.
 *
 * Returns true for good 20 s after it was first called for a detaching target; after 10 s if all
 * detaching targets are settled.
 */
must_check bool capture_prepare_detach(struct capture *c);

/*
 * Returns true after a crash (crash.h) in which a thread did not stop in time for a detach. The
 * caller must then end the tracing thread at once, and step 4 follows. Before that end, the caller
 * must not wait for a status of any tracee: capture reads statuses without consuming them, so the
 * wait would return the held stop of the crashed thread again and again.
 */
must_check bool capture_must_detach_now(const struct capture *c);

/* For reap.h: makes capture_must_detach_now() true until capture has attached again. */
void detach_demand_now(struct capture *c);

/*
 * For reap.h, before the tracing thread ends because of a crash of the target `but`: interrupts the
 * partial transfers of all other targets, so that they return what they have so far. Returns true
 * if no thread of these targets has an interrupt under way, or is in a call that would fail or
 * return less.
 */
must_check bool detach_others_are_settled(struct capture *c, const struct traced_process *but);

/*
 * Returns true if all threads are settled: none has an interrupt under way, and none is in a call
 * that would fail or return less if the tracer ended now. Call it after the last tick, after each
 * further stop, and several times a second. Interrupts resumed calls that take long, so that the
 * thread gets the result so far. Returns true 20 s after the first call at the latest, whatever the
 * threads do.
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
