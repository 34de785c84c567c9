/*
 * A tick of one process: which of its threads are looked at, in which order.
 */
#ifndef LIB_CAPTURE_TICK_H
#define LIB_CAPTURE_TICK_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/capture/state.h"

/*
 * Begins a tick. Returns false if it is no tick of this process, or if no thread has to be looked
 * at. Else tick_continue is to be called until it returns false: each call looks at some threads,
 * and stops may be handled in between. Both functions charge the process for the time since
 * charged_ns, and set that.
 */
must_check bool tick_begin(struct traced_process *t, uint64_t tick, uint64_t time_ns);
must_check bool tick_continue(struct traced_process *t);

#endif
