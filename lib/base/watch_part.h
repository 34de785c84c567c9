/*
 * Watched parts: short ranges of a target's memory that unwind chooses in mapped files. Capture
 * reports the hash of a part's bytes when the hash has changed (record_watched in
 * lib/capture/sample.h). unwind compares it with the hash of the same bytes in the file. If they
 * differ, the target has mapped another file at this address.
 */
#ifndef LIB_BASE_WATCH_PART_H
#define LIB_BASE_WATCH_PART_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/siphash.h"

/* The most parts of a target, and the most bytes of each. */
#define WATCH_PARTS 64
#define WATCH_BYTES 64

struct watch_part {
	uint64_t addr; /* in the target */
	uint32_t size; /* bytes, 1 to WATCH_BYTES */
	/*
	 * 1: capture reads the part at each tick at which it looks at a thread of the target or
	 * samples one. 0: at such a tick only if 8 ticks have passed since capture last read all
	 * parts of the target.
	 */
	uint32_t often;
};

/* Returns the hash of a part, or of its bytes in a file. Both use the same, constant key. */
static inline uint64_t watch_part_hash(const void *bytes, size_t size)
{
	const uint8_t key[SIPHASH_KEY_SIZE] = {0};

	return siphash(key, bytes, size);
}

#endif
