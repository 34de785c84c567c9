/*
 * Samples processes without tracing them (capture_options.perf): running threads by the samples of
 * each processor (perf/perf.h), all others by looks at /proc. Capture is not their tracer, so a
 * debugger or a crash reporter can attach. capture.c and tick.c call this module in place of look.h
 * and stop.h.
 *
 * Capture looks at the threads for a tick when the tick's period has ended: a thread with a sample
 * in the period was running. The rings of perf/perf.h also report births, execs and ends of
 * threads; scans (attach.h) find what these have not reported.
 */
#ifndef LIB_CAPTURE_OBSERVE_H
#define LIB_CAPTURE_OBSERVE_H

#include <stdint.h>

#include "lib/capture/state.h"

/*
 * Starts the perf events, which are open already, if capture has no target yet. Cannot fail. Call
 * it before each target is added, so that no exec of the target is missed.
 */
void observe_start(struct capture *c);

/*
 * Sets c->tick, the tick under way, back to the last tick whose period has ended. Then reads the
 * rings of perf/perf.h and writes the samples up to the end of that period. Call it at the begin of
 * a tick.
 */
void observe_begin_tick(struct capture *c);

/*
 * Returns the number of the first tick at which capture can look at the threads for tick `tick`,
 * because the period of `tick` has ended by then.
 */
uint64_t observe_after(const struct capture *c, uint64_t tick);

/*
 * Looks at a thread at the tick under way; parameters as of look_at_thread(). Removes and frees the
 * thread if it has ended.
 */
void observe_look(struct thread *th, uint64_t ticks, const struct covered_ticks *covered);

/*
 * observe_place() returns what is done with a new sample of a thread in the period of a tick.
 * Exported for tests.
 */
enum observe_place {
	OBSERVE_TAKE, /* it becomes the thread's sample of this tick */
	/*
	 * The sample is kept for the next tick without one. Reason: the thread has moved to another
	 * processor and has a sample of this tick already, or the look at this tick is over.
	 */
	OBSERVE_KEEP,
	/* As OBSERVE_KEEP, but the thread has a kept sample: the new one is lost (MISSED_TWICE). */
	OBSERVE_DROP,
};
enum observe_place observe_place(const struct thread *th, uint64_t tick);

#endif
