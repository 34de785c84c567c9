/*
 * Copies a thread's registers and stack into a record of the ring (RECORD_SAMPLE).
 *
 * The stack is read straight into the reserved record by proc/memory.h; the caller notes in the
 * heartbeat which target it touches.
 */
#ifndef LIB_CAPTURE_SNAPSHOT_H
#define LIB_CAPTURE_SNAPSHOT_H

#include <stdint.h>

#include "lib/base/ring.h"
#include "lib/base/util.h"
#include "lib/capture/proc/memory.h"
#include "lib/capture/sample.h"
#include "lib/capture/stack_hints.h"

/* Of enum sample_arch, the processor that this program is built for. */
#if defined(__x86_64__)
#define SNAPSHOT_ARCH SAMPLE_ARCH_X86_64
#elif defined(__aarch64__)
#define SNAPSHOT_ARCH SAMPLE_ARCH_AARCH64
#endif

/* The most bytes of the ring that a sample by this plan can take. */
size_t snapshot_size(const struct stack_plan *plan);

/* The most bytes of any sample. */
#define SNAPSHOT_SIZE_MAX \
	(sizeof(struct record_sample) + 2 * SAMPLE_WHOLE_MAX + sizeof(struct sample_second) + 8)

/*
 * Copies the stack of thread tid, from the stack pointer in regs on, into a record for which
 * ring_reserve gave snapshot_size bytes. Fills in all of the record but its start (h). regs_known:
 * which registers are valid; sp and pc must be. pagemap_fd and seen: see memory_read. Returns the
 * record's size in bytes. If the stack cannot be read, the record has registers only. A second
 * range that lies in the first one, or cannot be read, is left out.
 */
size_t snapshot_take(struct record_sample *record, int pagemap_fd, struct memory_seen *seen,
		     int32_t tid, const uint64_t *regs, uint64_t regs_known, uint32_t flags,
		     const struct stack_plan *plan);

#endif
