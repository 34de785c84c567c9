/*
 * Processes whose memory is slow to read.
 *
 * A read of a process's memory can wait for a lock that its threads hold (slow_memory.c). A read
 * counts as slow if it took more than 0.1 ms plus 1 ns a byte, and the tracer's context switches
 * show that the tracer slept meanwhile. A process whose slow reads add up to more than 1 ms is not
 * sampled until they are less than a twentieth of the time that has passed.
 */
#ifndef LIB_CAPTURE_SLOW_MEMORY_H
#define LIB_CAPTURE_SLOW_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/capture/state.h"

/* Called at each tick of the process, so that the clock is read for slow processes only. */
void slow_memory_begin_tick(struct traced_process *t);

/* Returns true if the process's memory must not be read now. */
bool slow_memory_is_avoided(const struct traced_process *t);

/*
 * Call this after each read of the process's memory, which began at since_ns and copied size bytes.
 * A slow read can make slow_memory_is_avoided() true.
 */
void slow_memory_was_read(struct traced_process *t, uint64_t since_ns, size_t size);

/*
 * Call this after the tracer has slept for another reason than a read of memory: its context
 * switches up to now_ns do not make a read slow.
 */
void slow_memory_note_switches(struct capture *c, uint64_t now_ns);

#endif
