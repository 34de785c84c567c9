/*
 * A watched part: bytes of a process's memory that unwind chose, and of which capture reports the
 * hash when it changes (record_watched in lib/capture/sample.h).
 */
#ifndef LIB_BASE_WATCH_PART_H
#define LIB_BASE_WATCH_PART_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/siphash.h"

/* The most parts of a process, and the most bytes of each. */
#define WATCH_PARTS 64
#define WATCH_BYTES 64

struct watch_part {
	uint64_t addr;
	uint32_t size; /* 1 to WATCH_BYTES */
	/* 0: capture may read the part at each eighth tick only. */
	uint32_t often;
};

/* The key is known: the reader of a hash compares it with that of a file. */
static inline uint64_t watch_part_hash(const void *bytes, size_t size)
{
	const uint8_t key[SIPHASH_KEY_SIZE] = {0};

	return siphash(key, bytes, size);
}

#endif
