/*
 * Decides at which tick capture looks at each process next.
 *
 * The ticks of a process follow from its rate (capture_rate). While all of its threads sleep, looks
 * are left out: schedule_after_tick() makes the distance between two looks longer step by step, up
 * to 8 ticks. An event (a stop, a new thread or a death) brings the next look forward
 * (schedule_at_once). The capture's list of targets (struct scheduled) has the tick of each
 * process's next look: capture_tick() looks at the processes whose tick has come.
 */
#ifndef LIB_CAPTURE_SCHEDULE_H
#define LIB_CAPTURE_SCHEDULE_H

#include <stdint.h>

#include "lib/capture/state.h"

/*
 * Computes the rate at which capture wakes, which is the highest of all targets, and enters the
 * next look of each target into the list. Call this after a target was added or removed, or has got
 * another rate.
 */
void schedule_all(struct capture *c);

/*
 * Enters the next look of a process into the list: at the next tick of its rate, but not before
 * tick t->schedule.next_tick, which schedule_after_tick() and schedule_at_once() set. A process
 * without threads, or whose phase is not TRACED_SAMPLED, is due at the very next tick, whatever its
 * rate. Does nothing in phase TRACED_NEW. Call this after a change of phase, threads.n or
 * ticks.span.last.
 */
void schedule_target(struct traced_process *t);

/* Makes the next look happen at the next tick of the process, even if all of its threads sleep. */
void schedule_at_once(struct traced_process *t);

/*
 * Call this when a thread of the process wakes: as schedule_at_once(). From this tick on looks are
 * left out only after all threads have slept for some ticks again.
 */
void schedule_woken(struct traced_process *t);

/* Returns the number of ticks of the process since its last look, up to and including tick. */
uint64_t schedule_elapsed_ticks(const struct traced_process *t, uint64_t tick);

/*
 * For observe.h. Capture wakes only at the ticks of the target with the highest rate. A group of
 * ticks begins at a wake and ends just before the next wake. Example: if the highest rate is every
 * second tick, capture wakes at ticks 4 and 6, and ticks 4 and 5 are a group. These functions
 * return the first and the last tick of the group that contains this tick.
 */
uint64_t schedule_wake_begin(const struct capture *c, uint64_t tick);
uint64_t schedule_wake_end(const struct capture *c, uint64_t tick);

/*
 * For observe.h: returns the tick that a record of a sample carries if the sample was taken in the
 * period of `tick`. Capture looks at the ticks of a group together, when the group is over. So the
 * record carries the last tick of the group, schedule_wake_end(). 0: the process has no tick in
 * that group, so its rate permits no sample there.
 */
uint64_t schedule_tick_of(const struct traced_process *t, uint64_t tick);

/* Returns the number of ticks of the process after tick from, up to and including tick to. */
uint64_t schedule_ticks_between(const struct traced_process *t, uint64_t from, uint64_t to);

/*
 * Returns the span of a look at this tick (state.h). schedule_elapsed_ticks() must be above 0.
 * time_ns: the begin of the tick's period. Changes nothing.
 */
struct tick_span schedule_span(const struct traced_process *t, uint64_t tick, uint64_t time_ns);

/*
 * Returns the ticks of a span that the look covers (stands for), for one thread. awake_ns: for how
 * long the thread has been awake since it slept; UINT64_MAX: it was awake at the look before. If an
 * event has brought the look forward (schedule_at_once), the look covers its own tick only.
 *
 * Example: a process has ticks of 10 ms and has slept for long. Capture looks at it at tick 80, and
 * next at 88; the seven ticks 81 to 87 are left out. The look at 88 finds that a thread has been
 * awake for 25 ms, which is two whole ticks.
 * - The look covers its own tick, and the seven less the two ticks for which the thread has been
 *   awake: 1 + (7 - 2), ticks 83 to 88.
 * - At ticks 81 and 82 the thread counts as asleep (n_unchanged is 2).
 *
 * This is an estimate, right on average only. A thread that is awake for less than a tick is found
 * by one of eight such looks, so that this look stands for all eight ticks. A thread that is awake
 * for m whole ticks more is found by m more of these looks, and from then on it is looked at at
 * every tick: so m are subtracted.
 */
struct covered_ticks schedule_covered(const struct tick_span *span, uint64_t awake_ns);

/*
 * Returns the first tick of a span that was not left out; .n is 1. This is the span's last
 * tick, unless capture has come too late for some ticks.
 */
struct covered_ticks schedule_first(const struct tick_span *span);

/* Call this at the end of a tick: decides how many looks are left out if all threads sleep. */
void schedule_after_tick(struct traced_process *t, uint64_t tick);

#endif
