/*
 * Makes one tick of one process: decides which of its threads are looked at (look.h), and in which
 * order. capture.c calls it for each process that is due.
 */
#ifndef LIB_CAPTURE_TICK_H
#define LIB_CAPTURE_TICK_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/capture/state.h"

/*
 * tick_begin() begins the tick of this number; time_ns: begin of its period (tick.begin_ns).
 * Returns true if threads have to be looked at: the caller calls tick_continue() again and again,
 * until tick_continue() returns false. tick_begin() returns false if no thread is to be looked at:
 * - The tick is not due for the process, or the process is not in phase TRACED_SAMPLED. (In phase
 *   TRACED_AWAITS_EXEC the function still checks for an exec and for new threads.)
 * - The tick is over already: no thread needs a look; all threads miss the tick, because the
 *   process is withheld (capture_withhold); or the process has ended or has other rights.
 *
 * Each call of tick_continue() looks at some threads; between two calls the caller handles stops.
 * Except in the first case above, both functions add the time since capture.charged_ns to the
 * process's counter cost_ns, and set charged_ns to now.
 */
must_check bool tick_begin(struct traced_process *t, uint64_t tick, uint64_t time_ns);
must_check bool tick_continue(struct traced_process *t);

#endif
