/*
 * Looks at one thread at a tick, by its files in /proc. A blocked thread is sampled without being
 * stopped. A thread that has run since its last sample, or may run now, is interrupted, and is
 * sampled when it stops (stop.h).
 */
#ifndef LIB_CAPTURE_LOOK_H
#define LIB_CAPTURE_LOOK_H

#include <stdint.h>

#include "lib/base/util.h"
#include "lib/capture/state.h"

/*
 * Looks at an awake thread (sleepers.h) at the tick under way (th->target->ticks.span.last). ticks:
 * the number of ticks since the thread's last look, this one included. *covered says for which of
 * them this look stands. ticks - covered->before - covered->ticks of them count as missed (late).
 */
void look_at_thread(struct thread *th, uint64_t ticks, const struct covered_ticks *covered);

/*
 * Samples a thread that activity_look() has found blocked at *place, without stopping it. mark is a
 * reading of schedstat from before that; NULL: the kernel has none. Returns 0 if, after the copy,
 * the thread has not run since mark (without a mark: is blocked at *place again). With a mark it is
 * a sleeping thread then. Returns -EAGAIN if it has run, or an error of record_begin_sample(). With
 * capture_options.perf, -EAGAIN also if exec_compare_rights() returns false.
 */
must_check int look_sample_blocked(struct thread *th, uint64_t tick, uint64_t time_ns,
				   const struct activity_place *place,
				   const struct activity_mark *mark);

#endif
