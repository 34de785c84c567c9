/* A tick of one process: decides which of its threads are looked at, and in which order. */
#ifndef LIB_CAPTURE_TICK_H
#define LIB_CAPTURE_TICK_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/capture/state.h"

/*
 * Begins a tick. tick, time_ns: its number, and the begin of its period (tick.begin_ns). Returns
 * false if the process has no tick now, or if no thread has to be looked at: the tick is over.
 * Otherwise the caller calls tick_continue until that returns false. Each of these calls looks at
 * some threads; the caller may handle stops in between. Both functions add the time since
 * charged_ns (struct capture, state.h) to the counter cost_ns of the process, and set charged_ns to
 * now.
 */
must_check bool tick_begin(struct traced_process *t, uint64_t tick, uint64_t time_ns);
must_check bool tick_continue(struct traced_process *t);

#endif
