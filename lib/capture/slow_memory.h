/*
 * Keeps capture from reading the memory of processes where that is slow.
 *
 * A read of a process's memory can wait for a lock that a thread of the process holds, for example
 * during fork(2). A read counts as slow if it took more than 0.1 ms plus 1 ns a byte, and the
 * tracer's context switches show that the tracer slept meanwhile. Capture counts these switches
 * only for a time after a long read, so a first long read never counts as slow. If the slow reads
 * of a process add up to more than 1 ms, capture takes no samples of the process for 20 times the
 * excess. Example: after 5 ms of slow reads, for (5 - 1) * 20 = 80 ms. So in the long run slow
 * reads take at most a twentieth of the time. A slow read counts n + 1 times if the memory of n
 * other processes is avoided, too.
 */
#ifndef LIB_CAPTURE_SLOW_MEMORY_H
#define LIB_CAPTURE_SLOW_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/capture/state.h"

/*
 * Call this at the begin of each tick of the process. Forgets slow reads whose pause has long been
 * over, so that slow_memory_is_avoided() reads the clock for slow processes only.
 */
void slow_memory_begin_tick(struct traced_process *t);

/* Returns true if the process's memory must not be read now. */
bool slow_memory_is_avoided(const struct traced_process *t);

/*
 * Call this after each read of the process's memory. since_ns: when it began; size: bytes copied. A
 * slow read can make slow_memory_is_avoided() true.
 */
void slow_memory_was_read(struct traced_process *t, uint64_t since_ns, size_t size);

/*
 * Call this after the tracer may have slept for another reason than a read of memory. Then only
 * context switches after this call can make a read count as slow. now_ns: about the present time.
 */
void slow_memory_note_switches(struct capture *c, uint64_t now_ns);

#endif
