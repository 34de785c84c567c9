/*
 * Samples processes without tracing them (capture_options.perf): running threads by the samples of
 * each processor (perf/perf.h), all others by looks at /proc. Nothing is attached, so a debugger or
 * a crash reporter can be.
 *
 * A tick is looked at when its period has ended: a thread with a sample in the period was running.
 * A sample is written when the rings are read; the look counts it. The rings also report births,
 * execs and ends; scans (attach.h) find what they have not reported.
 */
#ifndef LIB_CAPTURE_OBSERVE_H
#define LIB_CAPTURE_OBSERVE_H

#include <stdint.h>

#include "lib/capture/state.h"

/*
 * Starts the events, if they do not run yet. Call it before a target is added, so that no exec of
 * the target is missed.
 */
void observe_start(struct capture *c);

/*
 * Reads the rings, writes the samples of the periods that have ended, and sets c->tick, which is
 * the tick under way, to the last of these periods. Call it at the begin of a tick.
 */
void observe_begin_tick(struct capture *c);

/* The first tick at which the period of this tick has ended. */
uint64_t observe_after(const struct capture *c, uint64_t tick);

/* Looks at a thread at the tick under way; as look_at_thread(). */
void observe_look(struct thread *th, uint64_t ticks, const struct covered_ticks *covered);

/* What is done with a sample of a thread in the period of this tick. */
enum observe_place {
	OBSERVE_TAKE, /* it is the thread's sample of this tick */
	/*
	 * The tick has a sample already, because the thread has moved to another processor, or is
	 * over: the sample is kept for the next tick at which the thread has none.
	 */
	OBSERVE_KEEP,
	OBSERVE_DROP, /* one is kept already */
};
enum observe_place observe_place(const struct thread *th, uint64_t tick);

#endif
