/*
 * Copies a thread's registers and stack into a record of the ring (RECORD_SAMPLE). record.c calls
 * this module for each sample that capture copies itself (the kernel copies those of perf/perf.h).
 * The plan of stack_hints.h says what to copy.
 *
 * Reads the stack straight into the reserved record (proc/memory.h). The read can hang, so before
 * it the caller notes in the heartbeat which target it touches (capture_beat, counters.h).
 */
#ifndef LIB_CAPTURE_SNAPSHOT_H
#define LIB_CAPTURE_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>

#include "lib/capture/proc/memory.h"
#include "lib/capture/sample.h"
#include "lib/capture/stack_hints.h"

/* The enum sample_arch of the processor that this program is built for. */
#if defined(__x86_64__)
#define SNAPSHOT_ARCH SAMPLE_ARCH_X86_64
#elif defined(__aarch64__)
#define SNAPSHOT_ARCH SAMPLE_ARCH_AARCH64
#endif

/* Returns the most bytes of the ring that a sample by this plan (stack_hints.h) can take. */
size_t snapshot_size(const struct stack_plan *plan);

/* The most bytes of any sample. */
#define SNAPSHOT_SIZE_MAX \
	(sizeof(struct record_sample) + 2 * SAMPLE_WHOLE_MAX + sizeof(struct sample_second) + 8)

/*
 * Copies the stack of thread tid into record, upwards from the red zone below the stack pointer in
 * regs, and sets all members of record but its start (h). The caller has reserved snapshot_size()
 * bytes. The thread must not run meanwhile: it is in a ptrace-stop, or blocked. Returns the
 * record's size in bytes.
 *
 * regs: ARCH_REGS values by DWARF number. Bit n of regs_known: regs[n] is valid; the bits of sp and
 * pc must be set. flags: those of enum sample_flags that the caller knows. The function adds
 * SAMPLE_CAPPED or SAMPLE_SECOND_CAPPED if the stack may go on above the bytes that plan asks for
 * in the first or the second range. pagemap_fd and seen: see memory_read().
 *
 * If the stack cannot be read, the record has no bytes of it. The second range (plan->second) is
 * left out if it begins in the first one or cannot be read.
 */
size_t snapshot_take(struct record_sample *record, int pagemap_fd, struct memory_seen *seen,
		     int32_t tid, const uint64_t *regs, uint64_t regs_known, uint32_t flags,
		     const struct stack_plan *plan);

#endif
