/*
 * Looks at one thread at a tick. A blocked thread is sampled without being stopped. Any other
 * thread is interrupted, and is sampled when it stops (stop.h).
 */
#ifndef LIB_CAPTURE_LOOK_H
#define LIB_CAPTURE_LOOK_H

#include <stdint.h>

#include "lib/base/util.h"
#include "lib/capture/state.h"

/*
 * Looks at an awake thread (sleepers.h) at the tick under way (t->ticks.span.last). ticks: the
 * number of ticks since the thread's last look, this one included, at least covered->before +
 * covered->ticks. Further ticks count as missed, since the tracer was late for them.
 */
void look_at_thread(struct thread *th, uint64_t ticks, const struct covered_ticks *covered);

/*
 * Samples a blocked thread without stopping it. mark was read before the thread was found blocked.
 * If the kernel has no schedstat, mark is NULL: then the thread must be at the same place before
 * and after the copy, and is sampled at each tick. Returns 0, -EAGAIN if the thread ran in between,
 * or an error of record_begin_sample.
 */
must_check int look_sample_blocked(struct thread *th, uint64_t tick, uint64_t time_ns,
				   const struct activity_place *place,
				   const struct activity_mark *mark);

#endif
