/*
 * Looks at one thread at a tick, without stopping it: a blocked thread is sampled as it is, any
 * other is interrupted, and gives its sample when it stops (stop.h).
 */
#ifndef LIB_CAPTURE_LOOK_H
#define LIB_CAPTURE_LOOK_H

#include <stdint.h>

#include "lib/capture/state.h"

/*
 * Looks at a thread that is awake, at the process's last tick. ticks: this tick, and those since
 * the thread's last look; ticks that the look does not cover are missed.
 */
void look_at_thread(struct thread *th, uint64_t ticks, const struct covered_ticks *covered);

#endif
