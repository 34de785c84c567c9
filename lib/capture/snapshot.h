/*
 * Writing a thread's registers and live stack into the ring.
 *
 * The stack goes straight into the reserved record, as lib/capture/memory.h
 * reads it: the caller shows in the heartbeat what it is about to touch.
 */
#ifndef LIB_CAPTURE_SNAPSHOT_H
#define LIB_CAPTURE_SNAPSHOT_H

#include <stdint.h>

#include "lib/base/ring.h"
#include "lib/base/util.h"
#include "lib/capture/memory.h"
#include "lib/capture/sample.h"

/*
 * Hints: where a thread's stack ends, as far as it is of use. Up to this one
 * they say that it is not known.
 */
#define SNAPSHOT_NO_HINT 1

/*
 * The most bytes of ring that a sample of a thread can take, with this stack
 * pointer and hint.
 */
size_t snapshot_size(uint64_t sp, uint64_t hint_top);

/*
 * Copies the stack of thread tid from regs' stack pointer into a record that
 * ring_reserve gave for snapshot_size bytes, and fills in everything but the
 * record's start (h). regs_known tells which registers count; sp and pc must
 * be among them. pagemap_fd and seen: see memory_read. Returns the record's
 * size in bytes. A stack that cannot be read gives a record with registers
 * only.
 */
size_t snapshot_take(struct record_sample *record, int pagemap_fd,
		     struct memory_seen *seen, int32_t tid,
		     const uint64_t *regs, uint64_t regs_known, uint32_t flags,
		     uint64_t hint_top);

/*
 * Which part of a thread's own stack belongs into its samples while it is on
 * another one, by the reader's word.
 */
struct snapshot_second {
	uint64_t addr; /* from there on; 0: none */
	uint64_t sp;   /* while the stack pointer is about here */
};

/*
 * The second range of a sample with this stack pointer: *ret_size bytes at what
 * is returned, in the stack that ends at own_end (0: not known, none); size 0:
 * none. The reader is not believed that it is a stack: no more can be asked
 * for than what lies below that end.
 */
uint64_t snapshot_plan(const struct snapshot_second *second, uint64_t sp,
		       uint64_t own_end, size_t *ret_size);

/*
 * Adds those bytes to a record that snapshot_take has made, unless they are in
 * it. Takes up to SNAPSHOT_SECOND_SIZE more; returns the record's size.
 */
#define SNAPSHOT_SECOND_SIZE(n) \
	((n) == 0 ? 0 : sizeof(struct sample_second) + 7 + (n))
size_t snapshot_add(struct record_sample *record, int pagemap_fd, int32_t tid,
		    uint64_t addr, size_t size);

#endif
