/*
 * Looks at one thread at a tick, by its files in /proc. A blocked thread is sampled without being
 * stopped. A thread that has run since its last sample, or may run now, is interrupted, and is
 * sampled when it stops (stop.h). tick.c calls this module for each thread that it visits.
 */
#ifndef LIB_CAPTURE_LOOK_H
#define LIB_CAPTURE_LOOK_H

#include <stdint.h>

#include "lib/base/util.h"
#include "lib/capture/state.h"

/*
 * Looks at an awake thread (sleepers.h) at the tick under way (th->target->ticks.span.last). ticks:
 * the number of ticks since the thread's last look, this one included. Of these,
 * covered->n_unchanged ticks count as unchanged, this look stands for covered->n, and the others
 * count as missed (MISSED_LATE). Example: if ticks is 8, n_unchanged 2 and n 5, 1 is missed. If the
 * thread cannot be announced to the reader, all `ticks` count as missed.
 *
 * If the thread was interrupted at an earlier tick and has not stopped yet, *covered is not used.
 * Then `ticks` are added to th->pending.unaccounted: the outcome of that interrupt, a sample or a
 * miss, stands for them, too.
 */
void look_at_thread(struct thread *th, uint64_t ticks, const struct covered_ticks *covered);

/*
 * Samples, without a stop, a thread that activity_look() has found blocked at *place. mark: a
 * reading of schedstat from before that; NULL: it could not be read. The sample gets tick and
 * time_ns; the caller counts it. Returns 0 if the copy is valid: the thread has not run since mark,
 * or, without a mark, is still blocked at *place. With a mark the thread is then in the list of
 * sleeping threads. Otherwise drops the sample, and returns
 * - -EAGAIN: the thread has run; or, with capture_options.perf, exec_program_is_known() was false;
 * - an error of record_begin_sample().
 */
must_check int look_sample_blocked(struct thread *th, uint64_t tick, uint64_t time_ns,
				   const struct activity_place *place,
				   const struct activity_mark *mark);

#endif
