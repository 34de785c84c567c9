/*
 * Watched parts: ranges of a process's memory (struct watch_part) that capture hashes at ticks. A
 * changed hash is reported in RECORD_WATCHED. unwind, which reads the ring, sends the list of
 * parts. unwind chooses bytes in which ELF files differ, so a changed hash can show that another
 * file is mapped at the same addresses.
 *
 * A hostile unwind process may send any list. The list can only make capture hash WATCH_PARTS *
 * WATCH_BYTES bytes at each tick, of a process whose stacks this unwind process gets anyway.
 */
#ifndef LIB_CAPTURE_WATCHED_PARTS_H
#define LIB_CAPTURE_WATCHED_PARTS_H

#include <stdbool.h>

#include "lib/base/watch_part.h"
#include "lib/capture/state.h"

/*
 * Replaces the list of t by a copy of n parts, at most WATCH_PARTS. The caller has checked that the
 * size of each part is 1 to WATCH_BYTES. list is the number of the list, which RECORD_WATCHED
 * repeats. The next watched_parts_tick() reports the hash of each part that is in memory.
 * Exception: if the number is that of the former list, a part that was in that list at the same
 * index is reported only when its hash changes. If memory cannot be allocated, t has no list.
 */
void watched_parts_set(struct traced_process *t, uint32_t list, const struct watch_part *parts,
		       size_t n);

/* Frees the list. Call this after an exec, at a new reader of the ring, and before t is freed. */
void watched_parts_clear(struct traced_process *t);

/*
 * Makes the next watched_parts_tick() calls report the hash of each part that is in memory. Call
 * this when the reader may have missed records.
 */
void watched_parts_forget(struct traced_process *t);

/*
 * Hashes the parts that are due (watch_part.often), and writes RECORD_WATCHED for each changed
 * hash. A part that is not in memory has the hash 0, which is reported only after another hash.
 * Does nothing without a list, without a reader of the ring, and while the memory is slow to read
 * (slow_memory.h). Call it once in each tick in which a thread has a look or a sample, before the
 * first of them. time_ns: the begin of the tick's period.
 */
void watched_parts_tick(struct traced_process *t, uint64_t tick, uint64_t time_ns);

#endif
