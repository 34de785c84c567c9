/*
 * Writing a thread's registers and live stack into the ring.
 *
 * The stack goes straight into the reserved record, as lib/capture/proc/memory.h
 * reads it: the caller shows in the heartbeat what it is about to touch.
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

/* The most bytes of ring that a sample by this plan can take. */
size_t snapshot_size(const struct stack_plan *plan);

/* And of any. */
#define SNAPSHOT_SIZE_MAX \
	(sizeof(struct record_sample) + 2 * SAMPLE_WHOLE_MAX + sizeof(struct sample_second) + 8)

/*
 * Copies the stack of thread tid from regs' stack pointer into a record that
 * ring_reserve gave for snapshot_size bytes, and fills in everything but the
 * record's start (h). regs_known tells which registers count; sp and pc must
 * be among them. pagemap_fd and seen: see memory_read. Returns the record's
 * size in bytes. A stack that cannot be read gives a record with registers
 * only; of a second range that is in the first one, or cannot be read, there
 * is nothing.
 */
size_t snapshot_take(struct record_sample *record, int pagemap_fd, struct memory_seen *seen,
		     int32_t tid, const uint64_t *regs, uint64_t regs_known, uint32_t flags,
		     const struct stack_plan *plan);

#endif
